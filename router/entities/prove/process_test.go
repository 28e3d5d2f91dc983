package prove_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/entities"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// The variables that make this test binary a writer or a cleaner. It ends when its standard input does, and prints a line for
// each call of a writer, and what a cleaner has done so far.
const (
	processKind  = "KILOSHARD_TEST_TORTURE_KIND"
	processStore = "KILOSHARD_TEST_TORTURE_STORE"
	processDir   = "KILOSHARD_TEST_TORTURE_DIR"
	processWalk  = "KILOSHARD_TEST_TORTURE_WALK" // entities and rows a second, or -1

	writer  = "writer"
	cleaner = "cleaner"
)

// The outcomes of a writer's call.
const (
	written   = "written"
	deleted   = "deleted"
	missing   = "missing"
	taken     = "taken"
	unindexed = "unindexed"
	failed    = "failed"
	wrong     = "wrong" // an error that must not occur
	counted   = "counted"
	noted     = "noted" // an error of a cleaner
)

func applicationOf(kind string) string { return "torture " + kind }

func openRouter(ctx context.Context, store mapstore.Store, application string) (*router.Router, error) {
	return router.New(ctx, router.Config{
		Maps: mapstore.NewSource(mapstore.SourceConfig{Store: store}),
		Pool: func(_ shards.Host, cfg *pgxpool.Config) error {
			cfg.ConnConfig.RuntimeParams["application_name"] = application
			cfg.MaxConns = 8
			return nil
		},
	})
}

// runProcess is a writer or cleaner. A host may be down when it begins.
func runProcess(kind string) (code int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
		if kind == writer {
			os.Exit(0)
		}
	}()
	for ctx.Err() == nil {
		err := work(ctx, kind)
		var differs *entities.DefinitionError
		switch {
		case err == nil || ctx.Err() != nil:
		case errors.As(err, &differs):
			say(wrong, err.Error())
			return 1
		default:
			say(failed, kind+" begins: "+err.Error())
			time.Sleep(100 * time.Millisecond)
		}
	}
	return 0
}

var saying sync.Mutex

func say(kind, text string) {
	saying.Lock()
	defer saying.Unlock()
	fmt.Fprintln(os.Stdout, kind, strings.ReplaceAll(text, "\n", "; "))
}

// work opens the store of entities, and writes or cleans until ctx ends.
func work(ctx context.Context, kind string) error {
	store, err := openStore(ctx, os.Getenv(processStore), os.Getenv(processDir))
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	r, err := openRouter(ctx, store, applicationOf(kind))
	if err != nil {
		return err
	}
	defer r.Close()
	s, err := entities.Open(ctx, r, definition)
	if err != nil {
		return err
	}
	if kind == cleaner {
		return clean(ctx, s)
	}
	var busy sync.WaitGroup
	for range 4 {
		busy.Go(func() {
			for ctx.Err() == nil {
				call(ctx, s)
				time.Sleep(rand.N(10 * time.Millisecond))
			}
		})
	}
	busy.Wait()
	return nil
}

func clean(ctx context.Context, s *entities.Store) error {
	report := func() {
		text, _ := json.Marshal(s.Stats()) // of plain values
		say(counted, string(text))
	}
	counting := time.NewTicker(200 * time.Millisecond)
	defer counting.Stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-ctx.Done():
				return
			case <-counting.C:
				report()
			}
		}
	}()
	walk, err := strconv.Atoi(os.Getenv(processWalk))
	if err != nil {
		return err
	}
	err = s.Clean(ctx, entities.CleanOptions{Interval: 300 * time.Millisecond, WalkPerSecond: walk, Log: func(err error) { say(noted, err.Error()) }})
	<-ended
	report()
	return err
}

// call puts or deletes an entity, and says how that ended.
func call(ctx context.Context, s *entities.Store) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	id, outcome := randomID(), written
	var err error
	if rand.IntN(6) == 0 {
		outcome, err = deleted, s.Delete(ctx, id)
	} else {
		err = s.Put(ctx, id, randomBody())
	}
	var differs *entities.DefinitionError
	var field *shards.FieldError
	switch {
	case err == nil:
		say(outcome, "")
	case errors.Is(err, entities.ErrNotFound):
		say(missing, "")
	case errors.Is(err, entities.ErrTaken):
		say(taken, "")
	case errors.Is(err, entities.ErrNotIndexed):
		say(unindexed, err.Error())
	case errors.As(err, &differs), errors.As(err, &field):
		say(wrong, err.Error())
	default:
		say(failed, err.Error())
	}
}
