package shards_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// FuzzSet checks that a set of shards that is read is written as one that is the same, and that none takes long.
func FuzzSet(f *testing.F) {
	for _, seed := range []string{"", "7", "0-1023", "0-9,77", "1-0", "-1", "00042", "99999999999", "1,1,1", "0-8191,0-8191", "1--2", " 1 , 2 ", "1-2-3", ","} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		slow := time.AfterFunc(10*time.Second, func() { panic(fmt.Sprintf("10 s for %.100q", text)) })
		defer slow.Stop()
		set, err := shards.ParseSet(text)
		if err != nil {
			return
		}
		if again, err := shards.ParseSet(set.String()); set.Len() > 0 && (err != nil || again.String() != set.String()) {
			t.Errorf("%q: got %s, and then %s, %v", text, set, again, err)
		}
	})
}

// FuzzHost checks that no way to show a host shows its password, and that none takes long.
func FuzzHost(f *testing.F) {
	for _, seed := range []string{"postgres://app:%s@10.0.0.1/app", "host=x password=%s", "postgres://app:%s/@x/?y", "postgres://a:b@%s@c/", "%s", "postgres://h/?password=%s", "postgres://a:%s?@h/x", "postgres://a:[%s]@h"} {
		f.Add("pg-a", seed)
	}
	const secret = "s3cret/word"
	f.Fuzz(func(t *testing.T, name, dsn string) {
		slow := time.AfterFunc(10*time.Second, func() { panic(fmt.Sprintf("10 s for %.100q", dsn)) })
		defer slow.Stop()
		if strings.Contains(name, "s3cret") || !strings.Contains(dsn, "%s") {
			return
		}
		h := shards.Host{Name: name, DSN: strings.ReplaceAll(dsn, "%s", secret), Weight: 1}
		_ = h.ConnString() + h.Passfile()
		at := strings.Index(dsn, "%s")
		if strings.Contains(dsn[:at], "@") || !strings.Contains(dsn[at:], "@") {
			return // it stands where a host does, which is shown
		}
		if text := fmt.Sprintf("%v %+v %#v %s %q", h, h, h, h, h); strings.Contains(text, "s3cret") {
			t.Errorf("%q is shown as %s", h.DSN, text)
		}
	})
}
