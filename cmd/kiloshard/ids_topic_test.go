package main

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// A smaller ID commits after a larger one: a reader that remembers the highest ID skips it, and the queue of the topic does not.
func TestQueueOfTopic(t *testing.T) {
	t.Parallel()
	host := shardtest.Hosts(t, 1)[0]
	connect := func() *pgx.Conn {
		conn, err := pgx.Connect(t.Context(), host.ConnString())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return conn
	}
	slow, fast, reader := connect(), connect(), connect()
	exec := func(conn *pgx.Conn, query string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	read := func(query string) []int64 {
		t.Helper()
		rows, _ := reader.Query(t.Context(), query)
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	const insert = "with p as (insert into photos default values returning id) insert into photos_to_index select id from p"
	queue := topic(t, "ids")["sql"][0]
	exec(reader, "create table photos (id bigint generated always as identity primary key); create table photos_to_index (id bigint primary key)")
	exec(slow, "begin; "+insert)
	exec(fast, insert)
	if got := read("select id from photos where id > 0"); !slices.Equal(got, []int64{2}) {
		t.Errorf("got %v, expected 2", got)
	}
	if got := read(queue); !slices.Equal(got, []int64{2}) {
		t.Errorf("the queue has %v, expected 2", got)
	}
	exec(slow, "commit")
	if got := read("select id from photos where id > 2"); len(got) != 0 {
		t.Errorf("got %v, expected none: the reader skips 1", got)
	}
	if got := read(queue); !slices.Equal(got, []int64{1}) {
		t.Errorf("the queue has %v, expected 1", got)
	}
}
