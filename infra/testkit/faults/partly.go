package faults

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"reflect"
)

// UnprocessedRest is the answer to a BatchGetItem of which only the first half
// of the keys, rounded up, was processed.
func UnprocessedRest() Fault {
	return func(r *http.Request, apply func() (*http.Response, error)) (*http.Response, error) {
		call, err := read(r)
		if err != nil {
			return nil, err
		}
		return after(func(_ *http.Request, answer *http.Response) (*http.Response, error) {
			var all struct {
				Responses map[string][]map[string]any
			}
			if err := json.NewDecoder(answer.Body).Decode(&all); err != nil {
				return nil, fmt.Errorf("reading the engine's answer: %w", err)
			}
			_ = answer.Body.Close()
			rest := map[string]any{}
			for table, asked := range object(call.Input["RequestItems"]) {
				keys := list(object(asked)["Keys"])
				left := keys[(len(keys)+1)/2:]
				all.Responses[table] = without(all.Responses[table], left)
				if len(left) > 0 {
					rest[table] = map[string]any{"Keys": left, "ConsistentRead": object(asked)["ConsistentRead"]}
				}
			}
			body, err := json.Marshal(map[string]any{"Responses": all.Responses, "UnprocessedKeys": rest})
			return response(r, http.StatusOK, answer.Header.Get("Content-Type"), body), err
		})(r, apply)
	}
}

// without leaves out the items that have one of these primary keys.
func without(items []map[string]any, keys []any) []map[string]any {
	var kept []map[string]any
	for _, item := range items {
		listed := false
		for _, key := range keys {
			same := true
			for name, value := range object(key) {
				same = same && reflect.DeepEqual(item[name], value)
			}
			listed = listed || same
		}
		if !listed {
			kept = append(kept, item)
		}
	}
	return kept
}

// RefuseVersions is S3's answer to a DeleteObjects of which it deleted nothing:
// 200, with an error of that code for each version.
func RefuseVersions(code string) Fault {
	return func(r *http.Request, _ func() (*http.Response, error)) (*http.Response, error) {
		var asked struct {
			Objects []struct{ Key, VersionId string } `xml:"Object"` //nolint:staticcheck // S3's own spelling
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, fmt.Errorf("reading a request: %w", err)
		}
		if err := xml.Unmarshal(body, &asked); err != nil {
			return nil, fmt.Errorf("reading a request: %w", err)
		}
		type refusal struct{ Key, VersionId, Code, Message string } //nolint:staticcheck // the same
		answer := struct {
			XMLName xml.Name  `xml:"DeleteResult"`
			Errors  []refusal `xml:"Error"`
		}{}
		for _, o := range asked.Objects {
			answer.Errors = append(answer.Errors, refusal{o.Key, o.VersionId, code, "as a test has it"})
		}
		written, err := xml.Marshal(answer)
		return response(r, http.StatusOK, "application/xml", written), err
	}
}
