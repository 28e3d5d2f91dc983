package provision_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// grantBundle is a cluster with a role that has no rights yet.
type grantBundle struct {
	config shards.Config
	m      *shards.Map
	role   string
}

func setupGrant(t *testing.T) *grantBundle {
	t.Helper()
	config := shardtest.MapConfig(8, shardtest.Hosts(t, 2))
	config.Strategy = shards.Strategy{By: shards.Modulo, Of: 8}
	config.Generators = []shards.Generator{
		{Kind: shards.Row, Names: []string{"invoice"}, Hosts: []string{config.Hosts[0].Name}},
		{Kind: shards.Tickets, Names: []string{"account"}, Hosts: []string{config.Hosts[0].Name, config.Hosts[1].Name}},
	}
	m, err := config.Map()
	if err != nil {
		t.Fatal(err)
	}
	b := &grantBundle{config: config, m: m}
	b.create(t)
	var database string
	b.as(t, 0, "", func(conn *pgx.Conn) {
		if err := conn.QueryRow(t.Context(), "select current_database()").Scan(&database); err != nil {
			t.Fatal(err)
		}
		b.role = "granted_" + database
		if _, err := conn.Exec(t.Context(), "create role "+b.role+" login password 'secret'"); err != nil {
			t.Fatal(err)
		}
	})
	t.Cleanup(func() { // the hosts are databases of one server
		for i := range b.m.Hosts() {
			b.in(t, context.Background(), i, "", func(conn *pgx.Conn) {
				if _, err := conn.Exec(context.Background(), "drop owned by "+b.role); err != nil {
					t.Error(err)
				}
			})
		}
		b.in(t, context.Background(), 0, "", func(conn *pgx.Conn) {
			if _, err := conn.Exec(context.Background(), "drop role "+b.role); err != nil {
				t.Error(err)
			}
		})
	})
	return b
}

func (b *grantBundle) create(t *testing.T) {
	t.Helper()
	if _, err := provision.Create(t.Context(), provision.CreateConfig{Map: b.m}); err != nil {
		t.Fatal(err)
	}
}

// as connects to a host, optionally as a role.
func (b *grantBundle) as(t *testing.T, host int, role string, fn func(*pgx.Conn)) {
	t.Helper()
	b.in(t, t.Context(), host, role, fn)
}

func (b *grantBundle) in(t *testing.T, ctx context.Context, host int, role string, fn func(*pgx.Conn)) {
	t.Helper()
	dsn := b.m.Hosts()[host].ConnString()
	if role != "" {
		dsn = localpg.AsRole(dsn, role, "secret")
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	fn(conn)
}

func (b *grantBundle) grant(t *testing.T, change func(*provision.GrantConfig)) provision.GrantReport {
	t.Helper()
	cfg := provision.GrantConfig{CreateConfig: provision.CreateConfig{Map: b.m}, Role: b.role}
	if change != nil {
		change(&cfg)
	}
	report, err := provision.Grant(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// may runs a statement in each shard as the role, and returns the shards in which it succeeds.
func (b *grantBundle) may(t *testing.T, query string) string {
	t.Helper()
	var may []shards.Number
	for host := range b.m.Hosts() {
		b.as(t, host, b.role, func(conn *pgx.Conn) {
			for _, n := range b.m.NumbersOn(b.m.Hosts()[host].Name) {
				if _, err := conn.Exec(t.Context(), strings.ReplaceAll(query, "SHARD", b.m.Schema(n))); err == nil {
					may = append(may, n)
				}
			}
		})
	}
	return shards.SetOf(may...).String()
}

func (b *grantBundle) inShards(t *testing.T, query string) {
	t.Helper()
	for n := range b.m.All().All() {
		b.as(t, b.m.HostIndex(n), "", func(conn *pgx.Conn) {
			if _, err := conn.Exec(t.Context(), strings.ReplaceAll(query, "SHARD", b.m.Schema(n))); err != nil {
				t.Fatal(err)
			}
		})
	}
}

const (
	makesIDs = "select SHARD.next_ids(2)"
	writes   = "insert into SHARD.photos default values"
	reads    = "select from SHARD.photos"
)

// TestGrant grants, revokes, and opens shards that get the rights of the others.
func TestGrant(t *testing.T) {
	t.Parallel()
	b := setupGrant(t)
	if got := b.may(t, makesIDs); got != "" {
		t.Fatalf("before: IDs are made in %s", got)
	}
	if report := b.grant(t, func(cfg *provision.GrantConfig) { cfg.DryRun = true }); report.Done.Len() != 8 {
		t.Errorf("to be done: %v, expected 8 shards", report.Done)
	}
	if got := b.may(t, makesIDs); got != "" {
		t.Fatalf("after a dry run: IDs are made in %s", got)
	}
	if report := b.grant(t, nil); report.Done.Len() != 8 || report.Missing.Len() != 0 {
		t.Errorf("done %v, missing %v", report.Done, report.Missing)
	}
	b.inShards(t, "create table SHARD.photos (id bigint primary key default SHARD.next_id())") // by a later migration
	b.as(t, 0, b.role, func(conn *pgx.Conn) {
		for _, query := range []string{"select kiloshard.next_invoice_id()", "select kiloshard.next_account_id()"} {
			if _, err := conn.Exec(t.Context(), query); err != nil {
				t.Error(err)
			}
		}
		if _, err := conn.Exec(t.Context(), "select nextval('kiloshard.ledger_entry_seq')"); err == nil {
			t.Error("the role draws from the ledger's sequence")
		}
	})

	// Shards that are created later, on the second host, get the rights.
	b.config.Shards, b.config.Placement[1].Shards = 12, shards.SetOfRanges(shards.Range{First: 4, Last: 11})
	var err error
	if b.m, err = b.config.Map(); err != nil {
		t.Fatal(err)
	}
	if report := b.grant(t, func(cfg *provision.GrantConfig) { cfg.DryRun = true }); report.Done.Len() != 0 || report.Missing.String() != "8-11" {
		t.Errorf("to be done: %v, missing %v, expected none and 8-11", report.Done, report.Missing)
	}
	b.create(t)
	b.inShards(t, "create table if not exists SHARD.photos (id bigint primary key default SHARD.next_id())")
	if ids, rows := b.may(t, makesIDs), b.may(t, writes); ids != "0-11" || rows != "0-11" {
		t.Errorf("IDs are made in %q, rows written in %q, expected 0-11", ids, rows)
	}
	if differences, err := provision.Verify(t.Context(), b.m); err != nil || len(differences) > 0 {
		t.Errorf("verify: %v, %v", differences, err)
	}

	// Verify reports a shard that lost the rights.
	b.as(t, 0, "", func(conn *pgx.Conn) {
		if _, err := conn.Exec(t.Context(), "revoke all on schema "+b.m.Schema(2)+" from "+b.role); err != nil {
			t.Fatal(err)
		}
	})
	differences, err := provision.Verify(t.Context(), b.m)
	if err != nil || len(differences) != 1 || differences[0].Kind != provision.KindRights || differences[0].Schema != b.m.Schema(2) || !strings.Contains(differences[0].Want, "kiloshard grant "+b.role) {
		t.Errorf("verify: %v, %v, expected the rights on shard 2", differences, err)
	}

	b.grant(t, func(cfg *provision.GrantConfig) { cfg.Revoke = true })
	if ids, rows := b.may(t, makesIDs), b.may(t, reads); ids != "" || rows != "" {
		t.Errorf("revoked: IDs are made in %q, rows read in %q", ids, rows)
	}
	b.grant(t, func(cfg *provision.GrantConfig) { cfg.ReadOnly = true })
	if read, ids, written := b.may(t, reads), b.may(t, makesIDs), b.may(t, writes); read != "0-11" || ids != "" || written != "" {
		t.Errorf("a reader: reads in %q, makes IDs in %q, writes in %q", read, ids, written)
	}
}

// TestGrantToMissingRole: without the role on each host, Grant changes nothing.
func TestGrantToMissingRole(t *testing.T) {
	t.Parallel()
	b := setupGrant(t)
	cfg := provision.GrantConfig{CreateConfig: provision.CreateConfig{Map: b.m}, Role: "no'such\" role"}
	_, err := provision.Grant(t.Context(), cfg)
	var host *shards.HostError
	if !errors.As(err, &host) || !strings.Contains(err.Error(), `no role no'such" role, expected on each host for its rights on shards: CREATE ROLE "no'such"" role" LOGIN`) {
		t.Errorf("got %v", err)
	}
	cfg.Revoke = true
	if _, err := provision.Grant(t.Context(), cfg); err != nil {
		t.Errorf("revoked: %v", err)
	}
	if differences, err := provision.Verify(t.Context(), b.m); err != nil || len(differences) > 0 {
		t.Errorf("verify: %v, %v", differences, fmt.Sprint(err))
	}
}

// A service's role that can act as the owner can set sequences back, regardless of its grants.
func TestVerifyFindsRolesThatActAsTheOwner(t *testing.T) {
	t.Parallel()
	b := setupGrant(t)
	b.grant(t, nil)
	check := func(want int) {
		t.Helper()
		found, err := provision.Verify(t.Context(), b.m)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range found {
			if d.Kind != provision.KindForeign || !strings.Contains(d.Found, b.role) || !strings.Contains(d.Found, "can act as their owner") {
				t.Errorf("unexpected: %s", d)
			}
		}
		if len(found) != want {
			t.Errorf("%d differences, want %d", len(found), want)
		}
	}
	check(0)
	b.as(t, 0, "", func(conn *pgx.Conn) {
		if _, err := conn.Exec(t.Context(), fmt.Sprintf("do $$ begin execute format('grant %%I to %s', current_user); end $$", b.role)); err != nil {
			t.Fatal(err)
		}
	})
	check(2) // roles are of the server, which both hosts share
}
