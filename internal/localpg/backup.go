package localpg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/kiloshard/kiloshard/internal/localpg/internal/cleanup"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/engine"
)

// A Backup is a base backup of a server, from which one new server can be started. It is safe for concurrent use.
type Backup struct {
	source Source
	keep   bool
	logger *slog.Logger

	mu   sync.Mutex  // guards copy
	copy engine.Copy // nil after the backup was used or removed
}

var (
	errNoBackup = fmt.Errorf("only servers run from binaries on this machine can be copied: %w", errors.ErrUnsupported)
	errUsed     = errors.New("the backup was used or removed")
)

// Backup takes a base backup of the running server with pg_basebackup, including all WAL that it needs. The backup is
// stored beside the server's directory and remains after the server stops. It has the server's roles, password, settings,
// environment and Keep.
//
// ctx governs the copying. Kill, Restart and Stop wait for it. Only servers from Local can be copied, since downloaded
// builds have no pg_basebackup; for others the error is errors.ErrUnsupported. After an error no files are left. A backup
// that [Backup.Standby] or [Backup.Restore] does not use is removed by [Backup.Remove], or, like a server's files, after
// this process has died.
func (s *Server) Backup(ctx context.Context) (*Backup, error) {
	b := &Backup{source: s.source, keep: s.keep, logger: s.logger}
	err := s.change("back up Postgres", func() (err error) {
		from, ok := s.engine.(engine.Copier)
		if !ok {
			return errNoBackup
		}
		b.copy, err = from.Backup(ctx, s.logger)
		return err
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Standby starts a hot standby from the backup. It streams from the backup's server, with the given application_name.
// select pg_promote() makes it a primary.
//
// It returns when the server answers; ctx governs the whole call. The settings override those of the backup. The backup
// cannot be used again: its files become the new server's, which Stop removes. After an error no files are left.
func (b *Backup) Standby(ctx context.Context, name string, settings map[string]string) (*Server, error) {
	return b.start(ctx, settings, func(data engine.Copy) (string, error) { return data.Follow(ctx, name, settings) })
}

// Restore starts a server from the backup that recovers from a WAL archive. The settings must contain restore_command;
// recovery_target_time or a similar setting ends the recovery. See
// https://www.postgresql.org/docs/current/continuous-archiving.html#BACKUP-PITR-RECOVERY.
//
// It returns when the server answers read-only queries, which may be before it reaches the target. ctx, the settings and
// the backup are as for Standby.
func (b *Backup) Restore(ctx context.Context, settings map[string]string) (*Server, error) {
	return b.start(ctx, settings, func(data engine.Copy) (string, error) { return data.Restore(ctx, settings) })
}

func (b *Backup) start(ctx context.Context, settings map[string]string, run func(engine.Copy) (string, error)) (*Server, error) {
	if _, err := serverSettings(settings); err != nil {
		return nil, fmt.Errorf("start Postgres from a backup: %w", err)
	}
	data := b.take()
	if data == nil {
		return nil, fmt.Errorf("start Postgres from a backup: %w", errUsed)
	}
	version, err := run(data)
	if err != nil {
		return nil, fmt.Errorf("start Postgres from a backup: %w", errors.Join(err, cleanup.Do(ctx, data.Remove)))
	}
	s := &Server{source: b.source, version: version, keep: b.keep, logger: b.logger, engine: data, running: true}
	b.logger.DebugContext(ctx, "postgres started from a backup", slog.String("server", s.Describe()))
	return s, nil
}

// Remove removes the files of a backup that was not used, even if ctx has ended.
func (b *Backup) Remove(ctx context.Context) error {
	data := b.take()
	if data == nil {
		return nil
	}
	if err := cleanup.Do(ctx, data.Remove); err != nil {
		return fmt.Errorf("remove the backup: %w", err)
	}
	return nil
}

// take returns the copied data once, and then nil.
func (b *Backup) take() engine.Copy {
	b.mu.Lock()
	defer b.mu.Unlock()
	data := b.copy
	b.copy = nil
	return data
}
