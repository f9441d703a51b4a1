package wire

// SetCredential replaces what a client's requests are authorised with.
func (c *Client) SetCredential(cred Credential) { c.credential = cred }
