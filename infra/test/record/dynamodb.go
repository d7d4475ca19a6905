package record

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// item is an item or a key, its values undecoded.
type item map[string]json.RawMessage

// input has the members of all operations on one table, and of each part of a batch or
// transaction.
type input struct {
	TableName                 string
	Item, Key                 item
	Keys                      []item
	UpdateExpression          string
	ConditionExpression       string
	ProjectionExpression      string
	KeyConditionExpression    string
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues item // by placeholder
	ReturnValues              string
	Select                    string
	ReturnConsumedCapacity    string
}

// dynamoDB returns the calls of a request. To IAM a transaction is the actions of its
// parts, and a batch one action on each table. BatchWriteItem's parts have another form:
// its calls have no leading key, and are refused.
func (c Client) dynamoDB(q Request) (calls []Call) {
	var in struct {
		input
		RequestItems  map[string]input
		TransactItems []map[string]input
	}
	_ = json.Unmarshal(q.Body, &in) // see above
	for table, one := range in.RequestItems {
		one.TableName = table
		calls = append(calls, c.onTable(q.Operation, one))
	}
	for _, part := range in.TransactItems {
		for verb, one := range part {
			calls = append(calls, c.onTable(verb+"Item", one))
		}
	}
	if calls == nil {
		calls = []Call{c.onTable(q.Operation, in.input)}
	}
	return calls
}

func (c Client) onTable(operation string, in input) Call {
	call := c.call("dynamodb:"+operation, in.TableName)
	leading, attributes := in.named()
	call.set("dynamodb:LeadingKeys", slices.Sorted(maps.Keys(leading))...)
	call.set("dynamodb:Attributes", slices.Sorted(maps.Keys(attributes))...)
	call.set("dynamodb:ReturnValues", in.ReturnValues)
	call.set("dynamodb:Select", in.Select)
	call.set("dynamodb:ReturnConsumedCapacity", in.ReturnConsumedCapacity)
	return call
}

var (
	// partition is the part of a key condition that names the partition.
	partition = regexp.MustCompile(`\bpk = (:\w+)`)
	// noAttribute is what an expression has beside top-level attributes: values, members
	// of attributes, numbers, functions and keywords.
	noAttribute = regexp.MustCompile(`:\w+|\.[#\w]+|\b\d+\b|\w+\s*\(|\b(SET|REMOVE|ADD|DELETE|AND|OR|NOT|BETWEEN|IN)\b`)
	attribute   = regexp.MustCompile(`#?\w+`)
)

// named returns the kinds of items that the request is about, and the top-level attributes
// that it names, those of the key included.
func (in input) named() (leading, attributes map[string]bool) {
	leading, attributes = map[string]bool{}, map[string]bool{}
	items := append(in.Keys, in.Key, in.Item)
	if found := partition.FindStringSubmatch(in.KeyConditionExpression); found != nil {
		items = append(items, item{"pk": in.ExpressionAttributeValues[found[1]]})
	}
	for _, i := range items {
		for name := range i {
			attributes[name] = true
		}
		var key struct{ S string }
		if json.Unmarshal(i["pk"], &key) == nil {
			leading[kind(key.S)] = true
		}
	}
	for _, text := range []string{in.UpdateExpression, in.ConditionExpression, in.ProjectionExpression, in.KeyConditionExpression} {
		for _, name := range attribute.FindAllString(noAttribute.ReplaceAllString(text, " "), -1) {
			attributes[cmp.Or(in.ExpressionAttributeNames[name], name)] = true
		}
	}
	return leading, attributes
}

// kind is the kind of item that a partition key names: key#* of key#1234.
func kind(key string) string {
	prefix, _, ok := strings.Cut(key, "#")
	if !ok {
		return key
	}
	return prefix + "#*"
}
