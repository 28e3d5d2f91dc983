package rows

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// Migration returns the structure of a shard, as a migration has it, with sequences of the shard in the place of old ones, as [Finish] makes
// them: the migration then works in a database that has never been adopted.
func Migration(ctx context.Context, cfg Config, n shards.Number, structure string) (text string, err error) {
	j, err := open(ctx, cfg)
	if err != nil {
		return "", err
	}
	defer j.close(ctx)
	err = j.inTx(ctx, j.conn, func(tx pgx.Tx) error {
		text, err = j.inMigration(ctx, tx, j.cfg.Map.Schema(n), structure)
		return err
	})
	return text, err
}

func (j *job) inMigration(ctx context.Context, tx pgx.Tx, schema, text string) (string, error) {
	all, err := j.sequences(ctx, tx, []string{schema})
	if err != nil {
		return "", err
	}
	var before, after strings.Builder
	for _, s := range all {
		users, err := drawers(ctx, tx, schema, s)
		if err != nil {
			return "", err
		}
		if s.Key {
			for _, u := range users {
				text = strings.ReplaceAll(text, " DEFAULT "+u.Expression, "")
			}
			continue
		}
		name, start := "{{.schema}}."+quote(ownName(s, users)), ""
		if s.Step > 0 && !s.Cycle && (s.Max-s.Min)/s.Step >= j.round() {
			start = fmt.Sprintf("SELECT setval(%s, %d + %d * {{.shard}}, false);\n", asConstant(name), s.Min, s.Step)
			s.Step *= j.round()
		}
		fmt.Fprintf(&before, "%s;\n%s", s.make(name), start)
		text = strings.ReplaceAll(text, asConstant(s.Name), asConstant(name))
		if len(users) == 1 {
			fmt.Fprintf(&after, "ALTER SEQUENCE %s OWNED BY {{.schema}}.%s.%s;\n", name, quote(users[0].Table), quote(users[0].Column))
		}
	}
	return before.String() + strings.TrimRight(text, "\n") + "\n" + after.String(), nil
}
