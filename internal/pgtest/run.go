package pgtest

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Run runs statements, separated by semicolons, and returns the rows of the last one, with a space between columns.
func Run(ctx context.Context, conn *pgx.Conn, statements string) ([]string, error) {
	results, err := conn.PgConn().Exec(ctx, statements).ReadAll()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, row := range results[len(results)-1].Rows {
		parts := make([]string, len(row))
		for i := range row {
			parts[i] = string(row[i])
		}
		found = append(found, strings.Join(parts, " "))
	}
	return found, nil
}
