package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/pflag"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/sql"
)

// auditLimit is how long hosts may take to write their audit lines.
const auditLimit = 10 * time.Second

// errNoAudit says that a host has the helper schema of an older release.
var errNoAudit = errors.New("kiloshard.audit is missing: run kiloshard upgrade")

// Audit adds the running command to kiloshard.audit on hosts, before it works there. If arguments is not nil they take the place of
// the command's own, which may hold secrets. A host that refuses its line is named in a warning, and the command goes on. A host that
// cannot be connected to gets no line and no warning: the command does nothing there, and says so itself.
func (a *App) Audit(ctx context.Context, hosts []shards.Host, arguments []string) {
	a.audit(ctx, hosts, a.line(arguments), false)
}

// AuditMap is [App.Audit] for a command that has changed the map, on all hosts of the new one. It also warns of those that cannot be
// connected to, since the command itself connects to none.
func (a *App) AuditMap(ctx context.Context) {
	_, m, err := a.LoadMap(ctx)
	if err != nil { // such as a variable of a DSN that is not set
		a.Warn("warning: no audit line: %v", err)
		return
	}
	a.audit(ctx, m.Hosts(), fmt.Sprintf("%s # version %d", a.line(nil), m.Version()), true)
}

func (a *App) line(arguments []string) string {
	if arguments == nil {
		arguments = a.arguments
	}
	return commandLine(a.running.CommandPath(), a.running.Flags(), arguments)
}

func (a *App) audit(ctx context.Context, hosts []shards.Host, command string, unreached bool) {
	limited, cancel := context.WithTimeout(ctx, auditLimit)
	defer cancel()
	texts := make([]string, len(hosts))
	var all sync.WaitGroup
	for i, host := range hosts {
		all.Go(func() {
			reached, err := noteCommand(limited, host, command, Whoami(), a.running.Root().Version)
			if err != nil && (reached || unreached) {
				texts[i] = (&shards.HostError{Host: host.Name, Err: err}).Error()
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return // the command says that it was interrupted
	}
	for _, text := range GroupHosts(slices.DeleteFunc(texts, func(text string) bool { return text == "" })) {
		a.Warn("warning: no audit line: %s", text)
	}
}

// noteCommand adds a line on one host, and reports whether it could connect. It does nothing where nothing is installed.
func noteCommand(ctx context.Context, host shards.Host, command, who, release string) (reached bool, err error) {
	conn, err := connect.Open(ctx, host, func(c *pgx.ConnConfig) {
		connect.LimitLocks(c)
		c.RuntimeParams["application_name"] = "kiloshard audit"
	})
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close(ctx) }() // the line is committed, or never will be
	const query = `select to_regnamespace('kiloshard') is not null, to_regprocedure('kiloshard.note_command(text,text,text)') is not null`
	var installed, there bool
	if err := conn.QueryRow(ctx, query).Scan(&installed, &there); err != nil || !installed {
		return true, err
	}
	if !there {
		return true, errNoAudit
	}
	// The function must be ours before it is called: another role's would run with the rights of this one.
	if _, err := conn.PgConn().Exec(ctx, "begin;\n"+sql.RefuseForeign(sql.Ours{})).ReadAll(); err != nil {
		return true, withoutHint(err)
	}
	if _, err := conn.Exec(ctx, `select kiloshard.note_command($1, $2, $3)`, command, who, release); err != nil {
		return true, withoutHint(err)
	}
	_, err = conn.Exec(ctx, "commit")
	return true, err
}

// withoutHint returns the message of an error of the server, and other errors as they are.
func withoutHint(err error) error {
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) {
		return errors.New(pg.Message)
	}
	return err
}

// hiddenFlags are those whose values an audit line leaves out: a password may be in the first, and keys are data of users.
var hiddenFlags = []string{"login", "key"}

// commandLine returns a command as a shell would take it, without the values of hidden flags.
func commandLine(path string, flags *pflag.FlagSet, arguments []string) string {
	words := []string{path}
	flags.Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		if slices.Contains(hiddenFlags, f.Name) {
			value = "…"
		}
		words = append(words, fmt.Sprintf("--%s=%s", f.Name, shellWord(value)))
	})
	for _, argument := range arguments {
		words = append(words, shellWord(argument))
	}
	return OneLine(strings.Join(words, " "))
}

var plainWord = regexp.MustCompile(`^[\pL\pN_.,:/@%+=…-]+$`)

func shellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return ShellQuoted(text)
}
