package daemon

import (
	"net/url"
	"time"

	"agent/internal/model"
	"agent/internal/model/bedrock"
	"agent/internal/model/chatgpt"
	"agent/internal/model/wire"
	"agent/internal/secret"
)

// credentials are those of a daemon that are no plain key, each opened for the
// first provider that needs it.
type credentials struct {
	file    chatgpt.File
	send    *wire.Transports
	known   *secret.Values
	getenv  func(string) string
	version string

	login *chatgpt.Login
	aws   *bedrock.Keys
}

// awsPatience is how long a start waits for the aws command. Whoever starts a
// daemon waits for ten seconds in all.
const awsPatience = 3 * time.Second

// claim gives the sign-in to a provider chatgpt at the origin of the issuer
// that the file names, which is a test's. Any other URL is left as it was
// stated: the sign-in does not go there.
func (s *credentials) claim(specs []model.Spec) {
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

// of is what a provider with such a credential sends.
func (s *credentials) of(spec model.Spec) (wire.Credential, error) {
	if spec.Auth == model.AuthSigV4 {
		return s.sigV4(spec)
	}
	return s.chatGPT(spec)
}

func (s *credentials) know(values ...secret.Named) { s.known.Add(values...) }

func (s *credentials) sigV4(spec model.Spec) (wire.Credential, error) {
	if s.aws == nil {
		redact := func(text string) string { return string(s.known.Bytes([]byte(text))) }
		s.aws = bedrock.Open(s.getenv, s.know, redact, awsPatience)
	}
	return bedrock.New(spec, s.aws)
}

func (s *credentials) chatGPT(spec model.Spec) (wire.Credential, error) {
	at, err := url.Parse(spec.URL)
	if err != nil {
		return nil, err
	}
	if s.login == nil {
		if s.login, err = chatgpt.Open(s.file, s.send.RoundTrip, s.know, s.version); err != nil {
			return nil, err
		}
	}
	return s.login, s.login.Check(at)
}
