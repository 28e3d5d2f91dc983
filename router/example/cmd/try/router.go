package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// sayRouter tells what the router did unseen by users, by the metrics of the service.
func (t *try) sayRouter(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.service.firstLine+"/metrics", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer response.Body.Close()
	sums := map[string]int{} // over all hosts
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, rest, _ := strings.Cut(lines.Text(), "{")
		if value, err := strconv.ParseFloat(rest[strings.LastIndex(rest, " ")+1:], 64); err == nil {
			sums[strings.TrimPrefix(name, "kiloshard_router_")] += int(value)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("the metrics: %w", err)
	}
	t.say("\nBy its metrics, the router went over to another map %d times and made %d calls to the hosts.\n"+
		"Transactions that it ran again: %d.", sums["map_changes_total"], sums["calls_total"], sums["retries_total"])
	return nil
}
