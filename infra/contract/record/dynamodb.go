package record

import (
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// partitionKey is that of every table.
const partitionKey = "pk"

// item is an item or a key, its values undecoded.
type item map[string]json.RawMessage

// request has the members of all operations on one table, and of each part of a batch or
// transaction.
type request struct {
	TableName                string
	Item, Key                item
	Keys                     []item
	UpdateExpression         string
	ConditionExpression      string
	ProjectionExpression     string
	KeyConditionExpression   string
	ExpressionAttributeNames map[string]string
	// ExpressionAttributeValues are by placeholder, as those of an item by name.
	ExpressionAttributeValues item
	AttributesToGet           []string
	ReturnValues              string
	Select                    string
	ReturnConsumedCapacity    string
}

// dynamoDB names the calls of a request to DynamoDB. To IAM a transaction is the
// actions of its parts, and a batch one action on each table.
func (r *Recorder) dynamoDB(q *http.Request, body []byte) []Call {
	var in struct {
		request
		RequestItems  map[string]json.RawMessage
		TransactItems []map[string]request
	}
	_, operation, _ := strings.Cut(q.Header.Get("X-Amz-Target"), ".")
	if err := json.Unmarshal(body, &in); err != nil {
		return []Call{r.call("dynamodb:"+operation, "unreadable")}
	}
	switch {
	case in.TransactItems != nil:
		var calls []Call
		for _, part := range in.TransactItems {
			for verb, one := range part {
				calls = append(calls, r.onTable(transacted(verb), one))
			}
		}
		return calls
	case in.RequestItems != nil:
		return r.batch(operation, in.RequestItems)
	default:
		return []Call{r.onTable(operation, in.request)}
	}
}

// transacted is the action for one part of a transaction.
func transacted(verb string) string {
	if verb == "ConditionCheck" {
		return "ConditionCheckItem"
	}
	return verb + "Item"
}

// batch reads BatchGetItem. The parts of BatchWriteItem have another form and are left out.
// Such a call has no leading key and is refused.
func (r *Recorder) batch(operation string, tables map[string]json.RawMessage) []Call {
	var calls []Call
	for table, text := range tables {
		var one request
		_ = json.Unmarshal(text, &one) // see above
		one.TableName = table
		calls = append(calls, r.onTable(operation, one))
	}
	return calls
}

func (r *Recorder) onTable(operation string, in request) Call {
	c := r.call("dynamodb:"+operation, in.TableName)
	c.set("dynamodb:LeadingKeys", slices.Sorted(maps.Keys(in.leadingKeys()))...)
	c.set("dynamodb:Attributes", slices.Sorted(maps.Keys(in.attributes()))...)
	c.set("dynamodb:ReturnValues", in.ReturnValues)
	c.set("dynamodb:Select", in.Select)
	c.set("dynamodb:ReturnConsumedCapacity", in.ReturnConsumedCapacity)
	return c
}

// items are all items and keys of the request.
func (in request) items() []item { return slices.Concat(in.Keys, []item{in.Key, in.Item}) }

// leadingKeys are the kinds of items that the request is about.
func (in request) leadingKeys() map[string]bool {
	leading := map[string]bool{}
	for _, i := range in.items() {
		var key struct{ S string }
		if text, ok := i[partitionKey]; ok && json.Unmarshal(text, &key) == nil {
			leading[kind(key.S)] = true
		}
	}
	// A Query names its partition in an expression, as it must, by an equality.
	for _, equals := range equality.FindAllStringSubmatch(in.KeyConditionExpression, -1) {
		name, value := equals[1], equals[2]
		if alias, ok := in.ExpressionAttributeNames[name]; ok {
			name = alias
		}
		var key struct{ S string }
		if name == partitionKey && json.Unmarshal(in.ExpressionAttributeValues[value], &key) == nil {
			leading[kind(key.S)] = true
		}
	}
	return leading
}

// equality is the part of a key condition that names one partition.
var equality = regexp.MustCompile(`([#\w]+)\s*=\s*(:\w+)`)

// attributes are the top-level attributes that the request names, those of the
// key included.
func (in request) attributes() map[string]bool {
	named := map[string]bool{}
	for _, i := range in.items() {
		for name := range i {
			named[name] = true
		}
	}
	for _, text := range []string{in.UpdateExpression, in.ConditionExpression, in.ProjectionExpression, in.KeyConditionExpression} {
		for _, name := range attributesIn(text, in.ExpressionAttributeNames) {
			named[name] = true
		}
	}
	for _, name := range in.AttributesToGet {
		named[name] = true
	}
	return named
}

// word is an attribute's path, a keyword, a function's name or a value's.
var word = regexp.MustCompile(`[:#]?\w[\w.#\[\]]*\s*\(?`)

// keywords are words of expressions that are no attributes.
const keywords = " SET REMOVE ADD DELETE AND OR NOT BETWEEN IN "

// attributesIn are the top-level attributes that an expression names: account for `SET #a.x
// = :x`, if names maps #a to account.
func attributesIn(expression string, names map[string]string) []string {
	var found []string
	for _, w := range word.FindAllString(expression, -1) {
		path := strings.TrimSpace(strings.TrimSuffix(w, "("))
		head, _, _ := strings.Cut(path, ".")
		head, _, _ = strings.Cut(head, "[")
		switch {
		case strings.HasPrefix(head, ":"), isNumber(head):
		case strings.HasPrefix(head, "#"):
			found = append(found, names[head])
		case strings.Contains(keywords, " "+strings.ToUpper(head)+" "):
		case strings.HasSuffix(w, "("): // a function
		default:
			found = append(found, head)
		}
	}
	return found
}

func isNumber(s string) bool { return strings.Trim(s, "0123456789") == "" }
