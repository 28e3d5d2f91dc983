package dsn

import (
	"net/url"
	"strings"
)

// Userinfo returns the index of the @ that ends a URL's user and password, or -1.
func Userinfo(text string) int {
	scheme := len(Scheme(text))
	if end := strings.IndexAny(text[scheme:], "@/"); scheme > 0 && end >= 0 && text[scheme+end] == '@' {
		return scheme + end
	}
	return -1
}

// parseURL returns the settings of a URL, without its scheme, and false if libpq would refuse it.
func parseURL(rest string) ([]Setting, bool) {
	p := urlParser{ok: true}
	if end := strings.IndexAny(rest, "@/"); end >= 0 && rest[end] == '@' {
		user, password, _ := strings.Cut(rest[:end], ":")
		p.addUnlessEmpty("user", user)
		p.addUnlessEmpty("password", password)
		rest = rest[end+1:]
	}
	rest = p.addresses(rest)
	if path, ok := strings.CutPrefix(rest, "/"); ok {
		database, _, _ := strings.Cut(path, "?")
		p.addUnlessEmpty("dbname", database)
		rest = path[len(database):]
	}
	if query, ok := strings.CutPrefix(rest, "?"); ok {
		p.query(query)
	}
	return p.settings, p.ok
}

type urlParser struct {
	settings []Setting
	ok       bool
}

func (p *urlParser) decode(text string) string {
	text = strings.Trim(text, " ")
	plain, err := url.PathUnescape(text)
	p.ok = p.ok && err == nil && !strings.Contains(text, " ") && !strings.Contains(plain, "\x00")
	return plain
}

func (p *urlParser) addUnlessEmpty(key, text string) {
	if text != "" {
		p.settings = append(p.settings, Setting{key, p.decode(text)})
	}
}

// addresses reads the hosts and ports, with commas between them, and returns the text after them.
func (p *urlParser) addresses(rest string) string {
	var hosts, ports strings.Builder
	for {
		if strings.HasPrefix(rest, "[") {
			end := strings.IndexByte(rest, ']')
			if end <= 1 || end+1 < len(rest) && !strings.ContainsRune(":/?,", rune(rest[end+1])) {
				p.ok = false
				return ""
			}
			hosts.WriteString(rest[1:end])
			rest = rest[end+1:]
		} else {
			host := before(rest, ":/?,")
			hosts.WriteString(host)
			rest = rest[len(host):]
		}
		if after, ok := strings.CutPrefix(rest, ":"); ok {
			port := before(after, "/?,")
			ports.WriteString(port)
			rest = after[len(port):]
		}
		after, more := strings.CutPrefix(rest, ",")
		if !more {
			break
		}
		rest = after
		hosts.WriteByte(',')
		ports.WriteByte(',')
	}
	p.addUnlessEmpty("host", hosts.String())
	p.addUnlessEmpty("port", ports.String())
	return rest
}

// query reads keys and values. ssl=true, of JDBC, means sslmode=require.
func (p *urlParser) query(query string) {
	ssl, mode := -1, -1 // the last of each
	for query != "" {
		pair, more, _ := strings.Cut(query, "&")
		query = more
		key, value, found := strings.Cut(pair, "=")
		p.ok = p.ok && found && !strings.Contains(value, "=")
		s := Setting{canonical(p.decode(key)), p.decode(value)}
		switch s.Key {
		case "ssl":
			ssl = len(p.settings)
		case "sslmode":
			mode = len(p.settings)
		}
		p.settings = append(p.settings, s)
	}
	if ssl < 0 || p.settings[ssl].Value != "true" {
		return
	}
	all := p.settings
	p.settings = nil
	for i, s := range all {
		switch {
		case i == ssl && ssl > mode:
			p.settings = append(p.settings, Setting{"sslmode", "require"})
		case s.Key != "ssl":
			p.settings = append(p.settings, s)
		}
	}
}

// before returns the text before the first of some characters.
func before(text, chars string) string {
	if end := strings.IndexAny(text, chars); end >= 0 {
		return text[:end]
	}
	return text
}

// formatURL returns settings, with each key once, as a URL without its scheme.
func formatURL(settings []Setting) string {
	values := map[string]string{}
	for _, s := range settings {
		values[s.Key] = s.Value
	}
	var text string
	left := func(key string) bool { _, ok := values[key]; return ok }
	if values["user"] != "" {
		text = escape(values["user"])
		delete(values, "user")
		if values["password"] != "" {
			text += ":" + escape(values["password"])
			delete(values, "password")
		}
		text += "@"
	}
	port, hasPort := values["port"]
	if address, ok := formatAddresses(values["host"], port, hasPort); ok {
		text += address
		delete(values, "host")
		delete(values, "port")
	}
	text += "/"
	if values["dbname"] != "" {
		text += escape(values["dbname"])
		delete(values, "dbname")
	}
	separator := "?"
	for _, s := range settings {
		if left(s.Key) {
			text += separator + escape(s.Key) + "=" + escape(s.Value)
			separator = "&"
		}
	}
	return text
}

// formatAddresses returns hosts with their ports, and false if they must be in the query: a URL has either a port for each host or none.
func formatAddresses(host, port string, hasPort bool) (string, bool) {
	hosts, ports := strings.Split(host, ","), strings.Split(port, ",")
	if host == "" || len(hosts) != len(ports) || len(hosts) > 1 && !hasPort || len(hosts) == 1 && hasPort && port == "" {
		return "", false
	}
	for i, host := range hosts {
		hosts[i] = escape(host)
		if strings.Contains(host, ":") {
			hosts[i] = "[" + strings.ReplaceAll(hosts[i], "%3A", ":") + "]"
		}
		if ports[i] != "" {
			hosts[i] += ":" + escape(ports[i])
		}
	}
	return strings.Join(hosts, ","), true
}

// escape returns text for any place in a URL. Variables stay as they are.
func escape(text string) string {
	escaped := strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
	return escapedVariable.ReplaceAllString(escaped, "${$1}")
}
