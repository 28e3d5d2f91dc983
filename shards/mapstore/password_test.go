package mapstore_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
)

func TestPasswords(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		dsn     string
		refused bool
	}{
		{"postgres://app:${P}@10.0.0.1/app", false},
		{"postgres://${U}:${P}@${H}:${PORT}/${D}?sslmode=verify-full&sslrootcert=/etc/ca.pem", false},
		{"postgresql://app@a:5432,b:5433,[::1]:5434/app?target_session_attrs=read-write", false},
		{"postgres://app:${P}${Q}@10.0.0.1/app", false},
		{"postgres://app:@10.0.0.1/app", false},
		{"postgres://%2Frun%2Fpostgresql/app", false},
		{"postgres:///app?host=/run/postgresql&user=app", false},
		{"postgres://app@10.0.0.1/app?password=${P}", false},
		{"postgres://app:${P}@10.0.0.1/app?application_name=a@b", false},
		{"${DSN}", false},
		{"host=10.0.0.1 user=app password=${P}", false},
		{"host=10.0.0.1 password='${P}' user = app", false},
		{"service=photos", false},
		{"host=10.0.0.1 passfile=/etc/pgpass ${MORE}", false},

		{"postgres://app:sesame@10.0.0.1/app", true},
		{"postgres://app:sesame${P}@10.0.0.1/app", true},
		{"postgres://app:${P}sesame@10.0.0.1/app", true},
		{"postgres://app:${P@10.0.0.1/app", true},
		{"postgres://app:$P@10.0.0.1/app", true},
		{"postgres://app:ses@me@10.0.0.1/app", true},
		{"postgres://app:ses/ame@10.0.0.1/app", true},
		{"postgres://app:12/ame@10.0.0.1/app", true},
		{"postgres://app:ses?ame@10.0.0.1/app", true},
		{"postgres://app:ses#ame@10.0.0.1/app", true},
		{"postgres://10.0.0.1/app?password=sesame", true},
		{"postgres://10.0.0.1/app?user=app&passw%6Frd=sesame", true},
		{"postgres://10.0.0.1/app?sslpassword=sesame", true},
		{"postgres://10.0.0.1/app?x=%zz", true},
		{"postgres://app:%73esame@10.0.0.1/app", true},
		{"postgre://app:sesame@10.0.0.1/app", true},
		{"host=10.0.0.1 password=sesame", true},
		{"host=10.0.0.1 password = 'ses ame'", true},
		{"host=10.0.0.1 PASSWORD=sesame", true},
		{"host=10.0.0.1\vpassword=sesame", true},
		{"postgres://app@10.0.0.1@:sesame@/app", true},
		{`host=10.0.0.1 password='${P}\'sesame'`, true},
		{`host=10.0.0.1 password=ses\ ame`, true},
		{"host=10.0.0.1 password=${P}sesame", true},
		{"host=10.0.0.1 password=${P} sesame", true},
		{"host=10.0.0.1 sslpassword=sesame", true},
		{"host='10.0.0.1 password=sesame", true},
		{"app:sesame@10.0.0.1/app", true},
	} {
		t.Run(strings.ReplaceAll(test.dsn, "/", "|"), func(t *testing.T) {
			t.Parallel()
			s := openFile(t, filepath.Join(t.TempDir(), "kiloshard.yaml"))
			next := newChange(1)
			next.Config.Hosts[0].DSN = test.dsn
			_, err := s.Swap(newContext(t), 0, next)
			var refused *shards.FieldError
			if errors.As(err, &refused) != test.refused || err != nil && refused == nil {
				t.Fatalf("error %v", err)
			}
			if test.refused && (refused.Field != "hosts[0].dsn" || strings.Contains(err.Error(), "same")) {
				t.Errorf("error %v", err)
			}
		})
	}
}
