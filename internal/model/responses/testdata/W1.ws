GET /v1/responses HTTP/1.1
Host: 127.0.0.1:9000
Connection: Upgrade
Upgrade: websocket
Sec-WebSocket-Version: 13
Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==
Authorization: Bearer KEY
OpenAI-Beta: responses_websockets=2026-02-06
session-id: st1-7

HTTP/1.1 101 Switching Protocols
Upgrade: websocket
Connection: Upgrade
Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=
x-ratelimit-limit-requests: 6
x-ratelimit-remaining-requests: 6

> {"type":"response.create","model":"gpt-test-1","instructions":"","store":false,"include":["reasoning.encrypted_content"],"tools":[],"prompt_cache_key":"st1-7","input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]}]}
< {"type":"response.output_item.done","item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"echo","arguments":"{\"text\":\"hi\"}"}}
< {"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[],"usage":{"input_tokens":10,"output_tokens":2}}}
> {"type":"response.create","previous_response_id":"resp_1","model":"gpt-test-1","instructions":"","store":false,"include":["reasoning.encrypted_content"],"tools":[],"prompt_cache_key":"st1-7","input":[{"type":"function_call_output","call_id":"call_1","output":"hi"}]}
< {"type":"error","status":400,"error":{"type":"invalid_request_error","code":"previous_response_not_found","message":"Previous response with id 'resp_1' not found."}}
> {"type":"response.create","model":"gpt-test-1","instructions":"","store":false,"include":["reasoning.encrypted_content"],"tools":[],"prompt_cache_key":"st1-7","input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]},{"type":"function_call","id":"fc_1","call_id":"call_1","name":"echo","arguments":"{\"text\":\"hi\"}"},{"type":"function_call_output","call_id":"call_1","output":"hi"}]}
< {"type":"response.output_text.delta","delta":"done"}
< {"type":"response.output_item.done","item":{"type":"message","id":"m_2","role":"assistant","content":[{"type":"output_text","text":"done"}]}}
< {"type":"response.completed","response":{"id":"resp_2","status":"completed","output":[],"usage":{"input_tokens":20,"output_tokens":2}}}
