package daemon

import (
	"net/url"

	"agent/internal/model"
	"agent/internal/model/chatgpt"
	"agent/internal/model/wire"
	"agent/internal/secret"
)

// signIn is the ChatGPT sign-in of a daemon, opened for the first provider that
// needs it.
type signIn struct {
	file    chatgpt.File
	send    *wire.Transports
	known   *secret.Values
	version string
	login   *chatgpt.Login
}

// claim gives the sign-in to a provider chatgpt at the origin of the issuer
// that the file names, which is a test's. Any other URL is left as it was
// stated: the sign-in does not go there.
func (s *signIn) claim(specs []model.Spec) {
	for i := range specs {
		spec := &specs[i]
		if spec.Name != "chatgpt" || spec.Auth != model.AuthNone || spec.Family != model.FamilyResponses {
			continue
		}
		held, _, err := s.file.Read()
		at, perr := url.Parse(spec.URL)
		if err == nil && perr == nil && held.Issuer != "" && held.Serves(at) {
			spec.Auth = model.AuthChatGPT
		}
	}
}

// credential is what a provider with this kind of credential sends.
func (s *signIn) credential(spec model.Spec) (wire.Credential, error) {
	if spec.Auth != model.AuthChatGPT {
		return nil, model.Errorf("invalid_provider_spec", "provider %s: this build does not have Amazon Bedrock's request signing yet", spec.Name)
	}
	at, err := url.Parse(spec.URL)
	if err != nil {
		return nil, err
	}
	if s.login == nil {
		know := func(tokens ...secret.Named) { s.known.Add(tokens...) }
		if s.login, err = chatgpt.Open(s.file, s.send.RoundTrip, know, s.version); err != nil {
			return nil, err
		}
	}
	return s.login, s.login.Check(at)
}
