package daemon

import (
	"encoding/json"
	"os"
	"unicode/utf8"

	"agent/internal/model"
	"agent/internal/model/bedrock"
	"agent/internal/store"
	"agent/protocol"
)

// readyLine is the first line of every session (protocol.md 4).
func (d *Daemon) readyLine(scope *protocol.Scope) []byte {
	instance, lineage := d.store.Identity()
	r := &protocol.Ready{
		PID: os.Getpid(), Store: protocol.Store{Identity: instance, Lineage: lineage}, Schema: store.SchemaVersion(),
		Capabilities: capabilities, Limits: d.opt.Limits, Tools: d.engine.ToolNames(), Providers: d.withProxies(d.providers()),
		Version: d.opt.Version, Sandbox: d.sandboxInfo(),
		Walls: d.opt.Walls, Protected: d.opt.Protect, Scope: scope, Paused: d.engine.Paused(),
	}
	if d.bots != nil {
		r.BotSockets = &d.bots.dir
	}
	line, err := protocol.AppendReady(nil, r)
	if err != nil {
		d.opt.Log.Error("the ready line is not whole", "error", err)
	}
	return line
}

func (d *Daemon) providers() map[string]protocol.ProviderInfo {
	list := map[string]protocol.ProviderInfo{}
	for _, name := range d.opt.Registry.Names() {
		p, _ := d.opt.Registry.Provider(name)
		i := p.Info()
		shown := protocol.ProviderInfo{
			Family: string(i.Family), URL: i.URL, Transport: i.Transport, Plaintext: i.Plaintext, Auth: i.Auth, KeyEnv: i.KeyEnv,
			Region: i.Region,
		}
		if i.Auth == model.AuthSigV4 {
			shown.Credentials, shown.Unresolved = awsKeys(d.opt.AWS)
		}
		list[name] = shown
	}
	return list
}

// unresolvedLimit bounds the detail of keys that could not be had, in bytes.
const unresolvedLimit = 200

// awsKeys is where the AWS keys come from, and why there are none now.
func awsKeys(keys *bedrock.Keys) (source string, unresolved *protocol.Unresolved) {
	source, err := keys.Source()
	if err == nil {
		return source, nil
	}
	detail := err.Detail
	for len(detail) > unresolvedLimit {
		_, size := utf8.DecodeLastRuneInString(detail)
		detail = detail[:len(detail)-size]
	}
	return source, &protocol.Unresolved{Error: protocol.Code(err.Code), Detail: detail}
}

// stats is the daemon's load (protocol.md 12).
func (d *Daemon) stats() *protocol.Stats {
	st := d.engine.Stats()
	d.mu.Lock()
	st.Sessions = int64(len(d.sessions))
	d.mu.Unlock()
	st.Store = d.storeStats()
	st.Cursor = d.fan.last()
	if d.companions != nil {
		st.Companions = d.companions.records()
	}
	st.Transport.InFlightByShard = []int64{}
	if d.opt.InFlight != nil {
		for _, n := range d.opt.InFlight() {
			st.Transport.InFlightByShard = append(st.Transport.InFlightByShard, int64(n))
		}
	}
	st.Providers = map[string]protocol.ProviderStats{}
	for _, name := range d.opt.Registry.Names() {
		p, _ := d.opt.Registry.Provider(name)
		var ps protocol.ProviderStats
		if raw := p.Status(); raw != nil {
			if err := json.Unmarshal(raw, &ps); err != nil {
				d.opt.Log.Error("a provider's status cannot be read", "provider", name, "error", err)
			}
		}
		st.Providers[name] = ps
	}
	return st
}

// storeStats gives the store's figures the wire's type; the two have the same
// members.
func (d *Daemon) storeStats() (out protocol.StoreStats) {
	raw, err := json.Marshal(d.store.Stats())
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		d.opt.Log.Error("the store's figures cannot be read", "error", err)
	}
	return out
}
