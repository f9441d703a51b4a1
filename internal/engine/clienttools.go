package engine

import (
	"encoding/json"
	"fmt"

	"agent/internal/model"
	"agent/internal/store"
	"agent/protocol"
)

// checkClientTools says what is wrong with the tools that a client declares for
// a bot (protocol.md 11).
func (e *Engine) checkClientTools(list []protocol.ClientTool) *protocol.Error {
	if len(list) > protocol.MaxClientTools {
		return protocol.Fail(protocol.ClientToolsLimit, fmt.Sprintf("%d tools of at most %d", len(list), protocol.MaxClientTools))
	}
	names, size := map[string]bool{}, 0
	for i := range list {
		t := &list[i]
		if err := checkClientTool(t); err != nil {
			return err
		}
		if e.tools[t.Name] != nil || t.Name == webSearch || names[t.Name] {
			return protocol.Fail(protocol.ToolNameTaken, t.Name+" is a tool of this daemon, or declared twice")
		}
		names[t.Name] = true
		size += len(t.Parameters)
	}
	if size > protocol.MaxClientSchemas {
		return protocol.Fail(protocol.ClientToolsLimit, fmt.Sprintf("the parameters take %d bytes together, of at most %d", size, protocol.MaxClientSchemas))
	}
	return nil
}

func checkClientTool(t *protocol.ClientTool) *protocol.Error {
	bad := func(format string, args ...any) *protocol.Error {
		return protocol.Fail(protocol.InvalidClientTool, fmt.Sprintf("%q: ", t.Name)+fmt.Sprintf(format, args...))
	}
	switch {
	case !protocol.ValidToolName(t.Name):
		return bad("a tool's name is 1 to %d bytes of letters, digits, - and _", protocol.MaxToolName)
	case !protocol.ValidName(t.Tag):
		return protocol.Fail(protocol.InvalidTag, fmt.Sprintf("%q: %q is no tag; it is 1 to %d bytes of letters, digits, - _ and .", t.Name, t.Tag, protocol.MaxName))
	case len(t.Description) > protocol.MaxToolDescription:
		return bad("the description has %d bytes of at most %d", len(t.Description), protocol.MaxToolDescription)
	case t.ExpireMS != nil && (*t.ExpireMS < protocol.MinClientExpireMS || *t.ExpireMS > protocol.MaxClientExpireMS):
		return bad("expire_ms is %d to %d", protocol.MinClientExpireMS, protocol.MaxClientExpireMS)
	case len(t.Parameters) > protocol.MaxClientSchemas:
		return protocol.Fail(protocol.ClientToolsLimit, fmt.Sprintf("%q: the parameters take %d bytes of at most %d", t.Name, len(t.Parameters), protocol.MaxClientSchemas))
	}
	if _, err := parseSchema(t.Parameters); err != nil {
		return bad("parameters is no JSON Schema of an object: %v", err)
	}
	return nil
}

// encodeClientTools is the form in which a bot's row keeps its declarations:
// as declared, the schemas byte for byte. Nil for none.
func encodeClientTools(list []protocol.ClientTool) (json.RawMessage, error) {
	if len(list) == 0 {
		return nil, nil
	}
	return protocol.Append(nil, list)
}

// clientTools reads a bot's declarations.
func clientTools(b *store.Bot) ([]protocol.ClientTool, error) {
	if b.ClientTools == nil {
		return []protocol.ClientTool{}, nil
	}
	var list []protocol.ClientTool
	if err := json.Unmarshal(b.ClientTools, &list); err != nil {
		return nil, protocol.Fail(protocol.StoreRowInvalid, fmt.Sprintf("bots %d: client_tools cannot be read", b.ID))
	}
	return list, nil
}

// clientTool is the declaration of a tool that the turn's bot may call, nil
// when the name is none's.
func (t *task) clientTool(name string) *protocol.ClientTool {
	for i := range t.declared {
		if t.declared[i].Name == name {
			return &t.declared[i]
		}
	}
	return nil
}

// mayCall is what a bot may call, its client's tools after the daemon's own.
func mayCall(b *store.Bot, declared []protocol.ClientTool) []string {
	names := b.Effective()
	if b.AllowedSet {
		return names
	}
	names = names[:len(names):len(names)]
	for i := range declared {
		names = append(names, declared[i].Name)
	}
	return names
}

// checkServed checks a call's arguments by the tool's own schema.
func (e *Engine) checkServed(tool *protocol.ClientTool, args json.RawMessage) error {
	s, err := e.schemas.of(tool.Parameters)
	if err != nil {
		return fmt.Errorf("the tool's schema cannot be read: %w", err)
	}
	return s.check(args)
}

func expiryOf(tool *protocol.ClientTool) int64 {
	if tool.ExpireMS != nil {
		return *tool.ExpireMS
	}
	return protocol.ClientExpireMS
}

func clientDefs(list []protocol.ClientTool) (defs []model.ToolDef) {
	for i := range list {
		defs = append(defs, model.ToolDef{Name: list[i].Name, Description: list[i].Description, Parameters: list[i].Parameters})
	}
	return defs
}
