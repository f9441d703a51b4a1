package daemon

import (
	"encoding/base64"
	"net/url"
	"strings"

	"agent/internal/model"
	"agent/internal/secret"
	"agent/protocol"
)

// withProxies adds the proxy on the way to each provider, without its
// credentials.
func (d *Daemon) withProxies(list map[string]protocol.ProviderInfo) map[string]protocol.ProviderInfo {
	if d.opt.ProxyOf == nil {
		return list
	}
	for name, p := range list {
		if p.Transport != model.TransportLocal {
			p.Proxy = d.opt.ProxyOf(p.URL)
			list[name] = p
		}
	}
	return list
}

// takeProxies makes the credentials of the environment's proxies known to the
// redactor: a proxy that refuses may repeat them in its status line, which
// becomes an error's detail (providers.md 5).
func takeProxies(known *secret.Values, getenv func(string) string) {
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"} {
		for _, value := range proxySecrets(getenv(name)) {
			known.Add(secret.Named{Name: name, Value: secret.NewValue(value)})
		}
	}
}

// proxySecrets are a proxy's password, as it is and as the variable spells it,
// and what the header makes of it with the user's name.
func proxySecrets(proxy string) []string {
	u, err := url.Parse(proxy)
	if err != nil || u.Host == "" {
		u, err = url.Parse("http://" + proxy) // as the standard library takes it
	}
	if err != nil || u.User == nil {
		return nil
	}
	password, _ := u.User.Password()
	if password == "" {
		return nil
	}
	_, spelt, _ := strings.Cut(u.User.String(), ":")
	header := base64.StdEncoding.EncodeToString([]byte(u.User.Username() + ":" + password))
	return []string{password, spelt, header}
}
