package status

import (
	"context"
	"fmt"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// counterStatus is how far a central generator has come, as kiloshard status prints it.
type counterStatus struct {
	Name    string               `json:"name"`
	Kind    shards.GeneratorKind `json:"kind"`
	Servers []counterServer      `json:"servers"`
	Apart   int64                `json:"apart"` // largest less smallest last number of the servers that answer
}

type counterServer struct {
	Host string `json:"host"`
	Last int64  `json:"last"` // the last number that was given
	Up   bool   `json:"up"`
}

func counters(ctx context.Context, m *shards.Map) []counterStatus {
	result := []counterStatus{}
	for _, c := range provision.Counters(ctx, m) {
		status := counterStatus{Name: c.Name, Kind: c.Kind, Apart: c.Apart()}
		for _, s := range c.Servers {
			status.Servers = append(status.Servers, counterServer{Host: s.Host, Last: s.Last, Up: s.Err == nil})
		}
		result = append(result, status)
	}
	return result
}

func counterRows(all []counterStatus) [][]string {
	rows := [][]string{{"COUNTER", "KIND", "HOST", ">LAST", ">APART"}}
	for _, c := range all {
		for i, s := range c.Servers {
			row := []string{c.Name, string(c.Kind), s.Host, "?", ""}
			if s.Up {
				row[3] = fmt.Sprint(s.Last)
			}
			if i == 0 && len(c.Servers) > 1 {
				row[4] = fmt.Sprint(c.Apart)
			}
			rows = append(rows, row)
		}
	}
	return rows
}
