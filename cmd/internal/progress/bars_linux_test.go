package progress_test

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kiloshard/kiloshard/cmd/internal/progress"
	"github.com/kiloshard/kiloshard/shards"
)

// terminal returns both ends of a pseudo-terminal of so many columns and rows.
func terminal(t *testing.T, columns, rows uint16) (screen, program *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo-terminals here: ", err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	number, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(screen.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
	}
	if err == nil {
		program, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Close() })
	return screen, program
}

var movesUp = regexp.MustCompile(`\x1b\[(\d+)A`)

// Bars never fill more rows than the terminal has, so that nothing scrolls, and the last one is that of all hosts.
func TestBarsFitTheTerminal(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		hosts int
		rows  uint16
		bars  int
		want  []string
	}{
		{1, 24, 1, []string{"create pg-0 "}},
		{2, 24, 3, []string{"create pg-1 ", "create all ", "8/8"}},
		{64, 24, 22, []string{"create pg-19 ", "create 44 more ", "176/176", "create all ", "256/256", " done in "}},
		{64, 5, 3, []string{"create 63 more ", "create all "}},
	} {
		t.Run(fmt.Sprintf("%d hosts, %d rows", test.hosts, test.rows), func(t *testing.T) {
			t.Parallel()
			screen, program := terminal(t, 80, test.rows)
			shown := make(chan string)
			go func() {
				text, _ := io.ReadAll(screen) // an error once the other end is closed
				shown <- string(text)
			}()
			bars := progress.Bars("create", program)
			for h := range test.hosts {
				bars.Begin(fmt.Sprintf("pg-%d", h), 4)
			}
			for h := range test.hosts {
				for n := range 4 {
					bars.Finished(fmt.Sprintf("pg-%d", h), shards.Number(n), nil, 1)
				}
			}
			bars.End()
			_ = program.Close()
			text := <-shown
			last := text
			for _, up := range movesUp.FindAllStringSubmatch(text, -1) {
				if n, err := strconv.Atoi(up[1]); err != nil || n > test.bars {
					t.Errorf("%d bars, expected %d", n, test.bars)
				}
			}
			if i := strings.LastIndex(text, "A\x1b[J"); i >= 0 {
				last = text[i:]
			}
			if n := strings.Count(last, "create "); n != test.bars {
				t.Errorf("%d bars in the end, expected %d:\n%q", n, test.bars, last)
			}
			for _, want := range test.want {
				if !strings.Contains(last, want) {
					t.Errorf("no %q in %q", want, last)
				}
			}
		})
	}
}
