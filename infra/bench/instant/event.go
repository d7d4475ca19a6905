package instant

import "encoding/json"

// Event is a proxy event for the operation, as JSON.
func Event(method, resource, body string, path map[string]string, header map[string]string) []byte {
	headers := map[string][]string{"Authorization": {"Bearer " + Token}, "Content-Type": {"application/json"}}
	for name, value := range header {
		headers[name] = []string{value}
	}
	event := map[string]any{
		"resource": resource, "httpMethod": method, "pathParameters": path, "multiValueHeaders": headers,
		"stageVariables": map[string]string{"deleteRatePerMinute": "1000000", "deleteBurst": "100000"},
		"requestContext": map[string]any{"requestId": "0a1b2c3d-0000-4000-8000-000000000005", "identity": map[string]string{"sourceIp": "192.0.2.1"}},
	}
	if body != "" {
		event["body"] = body
	}
	if method == "DELETE" {
		event["multiValueQueryStringParameters"] = map[string][]string{"workspace_id": {Workspace}}
	}
	encoded, _ := json.Marshal(event) // maps of text always encode
	return encoded
}
