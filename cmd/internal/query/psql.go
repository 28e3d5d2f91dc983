package query

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// PsqlCommand is kiloshard psql.
func PsqlCommand(a *cli.App) *cobra.Command {
	var key, id string
	cmd := &cobra.Command{
		Use:   "psql SHARD | --key K | --id ID [-- ARG…]",
		Short: "Opens psql in a shard",
		Long: `Runs psql on the host of a shard, or of the shard of a key or an ID, with the shard's search_path and the map's
credentials and certificates. Arguments for psql come after --: kiloshard psql 42 -- -c 'select 1'.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if n := cmd.ArgsLenAtDash(); n > 1 || n < 0 && len(args) > 1 {
				return errors.New("too many arguments") // package program words it
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			number := ""
			if n := cmd.ArgsLenAtDash(); len(args) > 0 && n != 0 {
				number, args = args[0], args[1:]
			}
			if given := []bool{number != "", cmd.Flags().Changed("key"), cmd.Flags().Changed("id")}; countTrue(given) != 1 {
				return cli.Usagef("expected one of SHARD, --key K and --id ID")
			}
			_, m, err := a.LoadMap(cmd.Context())
			if err != nil {
				return err
			}
			n, err := shardOf(cmd.Context(), m, number, key, id)
			if err != nil {
				return err
			}
			return psql(cmd.Context(), a, m, n, args)
		},
		ValidArgsFunction: a.CompleteShard,
	}
	cmd.Flags().StringVar(&key, "key", "", "a key")
	cmd.Flags().StringVar(&id, "id", "", "an ID")
	return cmd
}

func countTrue(all []bool) (n int) {
	for _, is := range all {
		if is {
			n++
		}
	}
	return n
}

// shardOf returns the shard of a number, a key or an ID; one of them is set.
func shardOf(ctx context.Context, m *shards.Map, number, key, id string) (shards.Number, error) {
	switch {
	case number != "":
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil || !m.Has(shards.Number(n)) {
			return 0, cli.Usagef("shard %q: expected 0 to %d", number, m.Len()-1)
		}
		return shards.Number(n), nil
	case id != "":
		made, err := cli.ParseInt(id, "an ID", "--id")
		if err != nil {
			return 0, err
		}
		return m.ForID(shards.ID(made))
	}
	parsed, err := cli.ParseKey(m, key, "--key")
	if err != nil {
		return 0, err
	}
	r, err := router.New(ctx, router.Config{Map: m})
	if err != nil {
		return 0, err
	}
	defer r.Close()
	found, err := r.Explain(ctx, parsed)
	return found.Shard, err
}

// psql runs psql in a shard, once the host has said that it holds this shard of this cluster.
func psql(ctx context.Context, a *cli.App, m *shards.Map, n shards.Number, args []string) error {
	host := m.Host(n)
	conn, err := connect.Open(ctx, host, nil)
	if err == nil {
		_, err = conn.Exec(ctx, `select $1::text::regnamespace`, pgx.QueryExecModeExec, m.Schema(n))
		_ = conn.Close(ctx)
	}
	if err != nil {
		return &shards.ShardError{Shard: n, Schema: m.Schema(n), Host: host.Name, Err: err}
	}
	environment, err := connect.Environment(ctx, host)
	if err != nil {
		return &shards.HostError{Host: host.Name, Err: err}
	}
	if err := keepsPassword(environment); err != nil {
		return &shards.HostError{Host: host.Name, Err: err}
	}
	a.Audit(ctx, []shards.Host{host}, append([]string{fmt.Sprint(n)}, shownOptions(args)...))
	path := strings.NewReplacer(`\`, `\\`, " ", `\ `).Replace(m.SearchPath(n))
	cmd := exec.Command("psql", append(prompts(m.Schema(n), host.Name), args...)...) //nolint:noctx // Ctrl-C is psql's own
	cmd.Env = append(append(withoutLibpq(os.Environ()), environment...), "PGOPTIONS=-c search_path="+path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.Stdin, cli.Raw(a.Stdout), cli.Raw(a.Stderr)
	a.Warn("shard %d (%s on %s)", n, m.Schema(n), host.Name)
	err = cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("psql: %w: expected Postgres's client programs, such as Debian's package postgresql-client", err)
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return cli.ErrSilent // psql has said why
	}
	return err
}

// keptVariables are libpq's variables that do not change the server, the role or the way of a connection.
var keptVariables = []string{"PGAPPNAME", "PGCLIENTENCODING", "PGDATESTYLE", "PGTZ"}

// withoutLibpq returns an environment without libpq's other variables: PGSERVICE or PGHOSTADDR would send psql to another server.
func withoutLibpq(environment []string) []string {
	return slices.DeleteFunc(environment, func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return strings.HasPrefix(name, "PG") && !slices.Contains(keptVariables, name)
	})
}

// keepsPassword returns an error if psql could send the password in clear text over a connection without verified TLS. Our own check of the
// server does not help: another server may answer psql.
func keepsPassword(environment []string) error {
	var password, requires, socket bool
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		password = password || name == "PGPASSWORD"
		requires = requires || name == "PGREQUIREAUTH" && value != "" && !slices.Contains(strings.Split(value, ","), "password")
		socket = socket || name == "PGHOST" && strings.HasPrefix(value, "/")
	}
	if !password || !requires || socket {
		return nil
	}
	out, err := exec.Command("psql", "--version").Output() //nolint:noctx // it takes no time
	if err != nil {
		return nil //nolint:nilerr // starting it fails as well
	}
	var major int
	if _, err := fmt.Sscanf(string(out), "psql (PostgreSQL) %d", &major); err == nil && major >= 16 {
		return nil
	}
	return fmt.Errorf("%s would send the password as clear text if asked: expected psql 16 or later, or in the DSN sslmode=verify-full, or a require_auth with password", strings.TrimSpace(string(out)))
}

// prompts are arguments of psql whose prompt says which shard on which host it is in, such as "shard_00042@pg-a=>". What begins with a percent
// sign is psql's. A prompt of the user's psqlrc, which is read later, counts.
func prompts(schema, host string) []string {
	name := strings.ReplaceAll(schema+"@"+host, "%", "%%")
	return []string{"-v", "PROMPT1=" + name + "%R%x%# ", "-v", "PROMPT2=" + name + "%R%x%# "}
}
