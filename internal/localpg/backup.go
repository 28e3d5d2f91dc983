package localpg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
)

// A Backup is a base backup of a server, from which one new server can be started. It is safe for concurrent use.
type Backup struct {
	source Source
	keep   bool
	logger *slog.Logger

	mu   sync.Mutex // held for the length of every method; guards what follows
	copy copied     // nil once the backup was used or removed
}

// copied is the data of a server, not yet started.
type copied interface {
	engine
	// follow starts the server as a standby of the one that the data came from.
	follow(ctx context.Context, name string, settings map[string]string) (version string, err error)
	// restore starts the server as one that reads the archive.
	restore(ctx context.Context, settings map[string]string) (version string, err error)
}

// copier is an engine that can copy the data of its server while that runs.
type copier interface {
	backup(ctx context.Context, logger *slog.Logger) (copied, error)
}

var (
	errNoBackup = fmt.Errorf("only servers run from binaries on this machine can be copied: %w", errors.ErrUnsupported)
	errUsed     = errors.New("the backup was used or removed")
)

// Backup takes a base backup of the running server with pg_basebackup, with all the WAL that it needs by itself. The
// backup lies beside the server's own directory and outlives it; it has the roles, the password, the settings and the
// environment of the server, and its Keep.
//
// ctx governs the copying. Kill, Restart and Stop wait for it. Servers that do not come from Local or Download, and
// downloaded builds, which have no pg_basebackup, cannot be copied: the error is then errors.ErrUnsupported. After an
// error nothing of the backup is left. Without [Backup.Standby] or [Backup.Restore] it is removed by [Backup.Remove],
// or after this process's death as a server's files are.
func (s *Server) Backup(ctx context.Context) (*Backup, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil, ErrStopped
	}
	from, ok := s.engine.(copier)
	if !ok {
		return nil, fmt.Errorf("back up Postgres: %w", errNoBackup)
	}
	data, err := from.backup(ctx, s.logger)
	if err != nil {
		return nil, fmt.Errorf("back up Postgres: %w", err)
	}
	return &Backup{source: s.source, keep: s.keep, logger: s.logger, copy: data}, nil
}

// Standby starts a server from the backup that streams from the server which the backup was taken of, under the given
// application_name, and answers queries that only read. It becomes a primary by: select pg_promote().
//
// It returns when the server answers; ctx governs all of it. The settings go over those of the backup. The backup is
// used up, and its files are the new server's, which Stop removes; after an error nothing of them is left.
func (b *Backup) Standby(ctx context.Context, name string, settings map[string]string) (*Server, error) {
	return b.start(ctx, settings, func(data copied) (string, error) { return data.follow(ctx, name, settings) })
}

// Restore starts a server from the backup that recovers from a WAL archive: restore_command has to be among the
// settings, and recovery_target_time or the like says where it ends. See
// https://www.postgresql.org/docs/current/continuous-archiving.html#BACKUP-PITR-RECOVERY.
//
// It returns when the server answers, which may be before it has come to the target, for queries that only read. Of
// ctx, the settings and the backup the same holds as for Standby.
func (b *Backup) Restore(ctx context.Context, settings map[string]string) (*Server, error) {
	return b.start(ctx, settings, func(data copied) (string, error) { return data.restore(ctx, settings) })
}

func (b *Backup) start(ctx context.Context, settings map[string]string, run func(copied) (string, error)) (*Server, error) {
	if _, err := (Config{Settings: settings}).withDefaults(); err != nil {
		return nil, fmt.Errorf("start Postgres from a backup: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.copy == nil {
		return nil, fmt.Errorf("start Postgres from a backup: %w", errUsed)
	}
	data := b.copy
	b.copy = nil
	version, err := run(data)
	if err != nil {
		return nil, fmt.Errorf("start Postgres from a backup: %w", errors.Join(err, removeCopy(ctx, data)))
	}
	s := &Server{source: b.source, version: version, keep: b.keep, logger: b.logger, engine: data, running: true}
	b.logger.DebugContext(ctx, "postgres started from a backup", slog.String("server", s.Describe()))
	return s, nil
}

// Remove removes the files of a backup that was not used. It does its work even if ctx has ended.
func (b *Backup) Remove(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.copy == nil {
		return nil
	}
	data := b.copy
	b.copy = nil
	if err := removeCopy(ctx, data); err != nil {
		return fmt.Errorf("remove the backup: %w", err)
	}
	return nil
}

func removeCopy(ctx context.Context, data copied) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
	defer cancel()
	return data.remove(limited)
}
