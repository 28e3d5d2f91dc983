package files

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"

	"github.com/kiloshard/kiloshard/migrate/fileerror"
)

// outside are the functions of tern's templates that read something other than the files.
var outside = []string{"env", "expandenv", "getHostByName"}

// checkTemplates returns a [fileerror.Error] for the first file whose template reads the environment or looks up addresses: the
// author of a file must not read the environment of the process that migrates. It parses each text that tern parses, without these functions:
// text/template refuses an undefined function.
func (d *Directory) checkTemplates() error {
	all := sprig.TxtFuncMap()
	all["install_snapshot"] = func(string) string { return "" } // of tern; it parses files in a directory below, which are looked at like all
	without := maps.Clone(all)
	for _, name := range outside {
		delete(without, name)
	}
	return fs.WalkDir(d.files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if path.Dir(name) == "." && !namePattern.MatchString(name) { // tern leaves it out
			return nil
		}
		body, err := fs.ReadFile(d.files, name)
		if err != nil {
			return err
		}
		parts := [][2]string{{name, string(body)}}
		if path.Dir(name) == "." {
			upPart, downPart, _ := strings.Cut(string(body), upDownSeparator)
			parts = [][2]string{{name + " up", strings.TrimSpace(upPart)}, {name + " down", strings.TrimSpace(downPart)}}
		}
		for _, part := range parts {
			_, err := template.New(part[0]).Funcs(without).Parse(part[1])
			if err == nil {
				continue
			}
			if _, otherwise := template.New(part[0]).Funcs(all).Parse(part[1]); otherwise != nil {
				return cmp.Or(d.templateError(otherwise), otherwise)
			}
			called := slices.IndexFunc(outside, func(f string) bool { return strings.Contains(err.Error(), strconv.Quote(f)) })
			return &fileerror.Error{File: name, Err: fmt.Errorf("its template calls %s: expected none of %s, or Config.TemplateEnv (--template-env)", outside[max(called, 0)], strings.Join(outside, ", "))}
		}
		return nil
	})
}
