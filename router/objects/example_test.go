package objects_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/kiloshard/kiloshard/router/objects"
	"github.com/kiloshard/kiloshard/shards"
)

// Pin has the fields of the article's example.
type Pin struct {
	Details string    `json:"details"`
	Link    string    `json:"link"`
	Person  shards.ID `json:"user_id"`
	Board   shards.ID `json:"board_id"`
}

type Board struct {
	Name string `json:"name"`
}

type Person struct {
	Name string `json:"name"`
}

// The pin of the article: https://www.pinterest.com/pin/241294492511762325/ leads to one row of one table.
func ExampleLocate() {
	ctx := context.Background()
	r := exampleRouter(ctx, 3429)
	defer r.Close()

	p, err := objects.Locate(r, 241294492511762325)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.Shard.Number(), p.Type.Number, p.Local)
	fmt.Printf("SELECT data FROM %s.%s WHERE local_id = %d\n", p.Shard.Schema(), p.Table, p.Local)

	if _, err := p.Shard.Exec(ctx, `insert into pins values ($1, '{"details": "New Star Wars character", "link": "http://webpage.com/asdf"}')`, p.Local); err != nil {
		log.Fatal(err)
	}
	pins, err := objects.Open(r, "pin", objects.Options[Pin]{})
	if err != nil {
		log.Fatal(err)
	}
	pin, err := pins.Get(ctx, 241294492511762325)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(pin.Fields.Details)
	// Output:
	// 3429 1 7075733
	// SELECT data FROM shard_03429.pins WHERE local_id = 7075733
	// New Star Wars character
}

// The page of a board: the newest 50 of its pins, in two steps.
func ExampleJoin() {
	ctx := context.Background()
	r := exampleRouter(ctx, 7, 8)
	defer r.Close()
	boards, err := objects.Open(r, "board", objects.Options[Board]{})
	if err != nil {
		log.Fatal(err)
	}
	pins, err := objects.Open(r, "pin", objects.Options[Pin]{})
	if err != nil {
		log.Fatal(err)
	}
	boardHasPins, err := objects.OpenMapping(r, objects.Relation{From: "board", To: "pin"})
	if err != nil {
		log.Fatal(err)
	}

	shard, err := r.ForShard(7)
	if err != nil {
		log.Fatal(err)
	}
	board, err := boards.CreateIn(ctx, shard, Board{"Dogs"})
	if err != nil {
		log.Fatal(err)
	}
	began := time.Date(2015, 8, 18, 0, 0, 0, 0, time.UTC)
	for i := range 60 {
		pin, err := pins.CreateNear(ctx, board.ID, Pin{Details: fmt.Sprint("dog ", i), Board: board.ID})
		if err != nil {
			log.Fatal(err)
		}
		if _, _, err := boardHasPins.Add(ctx, board.ID, pin.ID, objects.ByTime(began.Add(time.Duration(i)*time.Minute))); err != nil {
			log.Fatal(err)
		}
	}

	var after *objects.Edge
	for {
		found, rows, err := objects.Join(ctx, boardHasPins, pins, board.ID, objects.Page{After: after, Limit: 50, Falling: true})
		if err != nil {
			log.Fatal(err)
		}
		if len(rows) == 0 {
			break
		}
		fmt.Println(len(found), "pins, from", found[0].Fields.Details, "to", found[len(found)-1].Fields.Details)
		after = &rows[len(rows)-1]
	}
	// Output:
	// 50 pins, from dog 59 to dog 10
	// 10 pins, from dog 9 to dog 0
}

// logins is both in the migration and in the program.
var logins = objects.ModTable{Name: "persons_by_facebook", Shards: 4096}

// Somebody logs in by Facebook: the ID there leads to the person here.
func ExampleMod() {
	ctx := context.Background()
	key := []byte("facebook:4")
	r := exampleRouter(ctx, 5, shards.MD5Shard(key, 4096))
	defer r.Close()
	persons, err := objects.Open(r, "person", objects.Options[Person]{})
	if err != nil {
		log.Fatal(err)
	}
	byFacebook, err := objects.OpenMod[shards.ID](r, logins)
	if err != nil {
		log.Fatal(err)
	}

	for range 2 { // the first time, and the second
		login, err := byFacebook.Get(ctx, key)
		if errors.Is(err, objects.ErrNotFound) {
			shard, err := r.ForShard(5)
			if err != nil {
				log.Fatal(err)
			}
			person, err := persons.CreateIn(ctx, shard, Person{"Ben"})
			if err != nil {
				log.Fatal(err)
			}
			if login, _, err = byFacebook.PutIfAbsent(ctx, key, person.ID); err != nil {
				log.Fatal(err)
			}
			fmt.Println("new")
		} else if err != nil {
			log.Fatal(err)
		}
		person, err := persons.Get(ctx, login.Value)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("hello", person.Fields.Name)
	}
	// Output:
	// new
	// hello Ben
	// hello Ben
}
