package etcdstore

import (
	"context"
	"log/slog"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// zapFor returns a logger for etcd's client. It logs everything at level debug, since the client warns about each
// attempt that it repeats.
func zapFor(logger *slog.Logger) *zap.Logger {
	encoder := zapcore.NewConsoleEncoder(zapcore.EncoderConfig{MessageKey: "message"})
	enabled := zap.LevelEnablerFunc(func(zapcore.Level) bool {
		return logger.Enabled(context.Background(), slog.LevelDebug)
	})
	return zap.New(zapcore.NewCore(encoder, debugWriter{logger}, enabled))
}

// debugWriter logs each line of zap.
type debugWriter struct{ logger *slog.Logger }

func (w debugWriter) Write(line []byte) (int, error) {
	w.logger.Debug("etcd: " + strings.TrimSpace(string(line)))
	return len(line), nil
}

func (w debugWriter) Sync() error { return nil }
