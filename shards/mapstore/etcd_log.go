package mapstore

import (
	"context"
	"log/slog"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// zapFor returns a logger for etcd's client that logs everything at level debug, since the client warns about each attempt
// that it repeats. A nil logger is silent.
func zapFor(logger *slog.Logger) *zap.Logger {
	if logger == nil {
		return zap.NewNop()
	}
	return zap.New(slogCore{logger})
}

// slogCore is a zapcore.Core over slog.
type slogCore struct{ logger *slog.Logger }

func (c slogCore) Enabled(zapcore.Level) bool {
	return c.logger.Enabled(context.Background(), slog.LevelDebug)
}

func (c slogCore) With(fields []zapcore.Field) zapcore.Core {
	return slogCore{c.logger.With(attributes(fields)...)}
}

func (c slogCore) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

func (c slogCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	c.logger.Debug("etcd: "+e.Message, attributes(fields)...)
	return nil
}

func (c slogCore) Sync() error { return nil }

func attributes(fields []zapcore.Field) []any {
	encoder := zapcore.NewMapObjectEncoder()
	var all []any
	for _, field := range fields {
		field.AddTo(encoder)
	}
	for key, value := range encoder.Fields {
		all = append(all, slog.Any(key, value))
	}
	return all
}
