package model_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"signalbox.dev/shared/ids"
)

// These tests send the same requests to the model and to an engine and compare the
// responses, member by member.

func text(s string) object   { return object{"S": s} }
func number(n int) object    { return object{"N": fmt.Sprint(n)} }
func boolean(b bool) object  { return object{"BOOL": b} }
func bytesOf(s string) any   { return object{"B": []byte(s)} }
func mapOf(of object) object { return object{"M": of} }

// request is a request to DynamoDB: an operation and its input.
type request struct {
	operation string
	in        object
}

func (r request) String() string {
	text, _ := json.Marshal(r.in)
	return r.operation + " " + string(text)
}

// requests generates requests of the kinds that the product makes, on few items, so
// that they meet. The partition keys begin with run.
type requests struct {
	*rapid.T
	run string
}

func oneOf[V any](t *rapid.T, values ...V) V { return rapid.SampledFrom(values).Draw(t, "choice") }

func (g requests) pk() object { return text(g.run + oneOf(g.T, "key#1", "workspace#1", "workspace#2")) }
func (g requests) sk() object {
	return text(oneOf(g.T, "key", "credential#1", "credential#2", "workspace"))
}

// place adds a table and a primary key to a write or a read.
func (g requests) place(in object, member string) object {
	in["TableName"], in[member] = "control", object{"pk": g.pk()}
	if oneOf(g.T, true, true, false) {
		in["TableName"], in[member] = "access", object{"pk": g.pk(), "sk": g.sk()}
	}
	return in
}

func (g requests) item() object {
	item := object{"v": number(1)}
	for name, value := range map[string]object{
		"account": text(oneOf(g.T, "a1", "a2")), "status": text(oneOf(g.T, "queued", "running", "failed")),
		"exp": number(oneOf(g.T, 1, 2, 3)), "tat": number(oneOf(g.T, 10, 20, 30)), "disabled": boolean(oneOf(g.T, true, false)),
		"next": mapOf(oneOf(g.T, object{}, object{"openai": number(3)})), "default_workspace": text(oneOf(g.T, "w1", "w2")),
		"seal":   mapOf(object{"key_arn": text(oneOf(g.T, "k1", "k2")), "wrapped_key": bytesOf("x")}),
		"models": {"L": []any{text("m"), object{"NULL": true}}}, "sort_order": number(oneOf(g.T, 0, 1)), "deleted_at": number(5),
	} {
		if oneOf(g.T, true, false) {
			item[name] = value
		}
	}
	return item
}

// condition adds a condition of the product's, or a random one over the same operators.
func (g requests) condition(in object) object {
	names, values := object{}, object{}
	value := func(v object) string {
		name := fmt.Sprintf(":c%d", len(values))
		values[name] = v
		return name
	}
	name := func(n string) string { names["#"+n] = n; return "#" + n }
	var condition string
	switch oneOf(g.T, 0, 1, 2, 3, 4, 5, 6) {
	case 0:
		return in
	case 1:
		condition = oneOf(g.T, "attribute_not_exists(pk)", "attribute_exists(pk)")
	case 2:
		condition = "attribute_not_exists(pk) OR exp <= " + value(number(oneOf(g.T, 1, 2, 3)))
	case 3:
		condition = "attribute_exists(pk) AND (attribute_not_exists(" + name("next") + ".openai) OR " + name("next") + ".openai < " + value(number(oneOf(g.T, 1, 9))) + ")"
	case 4:
		condition = "account = " + value(text("a1")) + " AND " + name("status") + " IN (" + value(text("queued")) + ", " + value(text("running")) + ")"
	case 5:
		condition = "attribute_not_exists(default_workspace) OR default_workspace <> " + value(text("w1"))
	case 6:
		condition = g.expression(3, value, name)
	}
	in["ConditionExpression"] = condition
	if oneOf(g.T, true, false) {
		in["ReturnValuesOnConditionCheckFailure"] = oneOf(g.T, "ALL_OLD", "NONE")
	}
	return expressed(in, names, values)
}

// expressed adds placeholders to those of the request.
func expressed(in object, names, values object) object {
	for member, more := range map[string]object{"ExpressionAttributeNames": names, "ExpressionAttributeValues": values} {
		all, _ := in[member].(object)
		if all = maps.Clone(all); all == nil {
			all = object{}
		}
		maps.Copy(all, more)
		if len(all) > 0 {
			in[member] = all
		}
	}
	return in
}

// expression is a random condition of a depth.
func (g requests) expression(depth int, value func(object) string, name func(string) string) string {
	if depth == 0 || oneOf(g.T, true, false) {
		path := oneOf(g.T, "tat", "exp", "account", "disabled", "seal.key_arn", name("status"), "models", "absent")
		constant := func() string {
			return value(oneOf(g.T, number(2), number(20), text("a1"), text("k1"), text("queued"), text("z")))
		}
		switch oneOf(g.T, 0, 1, 2, 3, 4) {
		case 0:
			return "attribute_exists(" + path + ")"
		case 1:
			return "begins_with(" + path + ", " + value(text(oneOf(g.T, "a", "q", "k1"))) + ")"
		case 2:
			return path + " IN (" + constant() + ", " + constant() + ")"
		case 3:
			return path + " BETWEEN " + value(number(2)) + " AND " + value(number(20))
		}
		return path + " " + oneOf(g.T, "=", "<>", "<", "<=", ">", ">=") + " " + constant()
	}
	left := func() string { return g.expression(depth-1, value, name) }
	switch oneOf(g.T, 0, 1, 2) {
	case 0:
		return "NOT " + left()
	case 1:
		return left() + oneOf(g.T, " AND ", " OR ") + left()
	}
	return "(" + left() + oneOf(g.T, " AND ", " OR ") + left() + ")" + oneOf(g.T, " AND ", " OR ") + left()
}

// update adds an update expression of the product's.
func (g requests) update(in object) object {
	n := number(oneOf(g.T, 1, 7, 25))
	expression, names, values := "", object{}, object{}
	switch oneOf(g.T, 0, 1, 2, 3, 4, 5, 6, 7, 8) {
	case 0:
		expression, values = "SET tat = :next, exp = :exp", object{":next": n, ":exp": number(3)}
	case 1:
		expression, values = "SET tat = tat + :interval, exp = :exp", object{":interval": n, ":exp": number(3)}
	case 2:
		expression = "SET #next.#provider = if_not_exists(#next.#provider, :zero) + :one"
		names, values = object{"#next": "next", "#provider": oneOf(g.T, "openai", "a/b")}, object{":zero": number(0), ":one": number(1)}
	case 3:
		expression, names, values = "SET #next.#provider = :next", object{"#next": "next", "#provider": "openai"}, object{":next": n}
	case 4:
		expression, values = "SET disabled = :true", object{":true": boolean(true)}
	case 5:
		expression = "REMOVE default_workspace"
	case 6:
		expression, values = "SET seal.key_arn = :to, seal.wrapped_key = :fresh", object{":to": text("k2"), ":fresh": bytesOf("y")}
	case 7:
		expression, names, values = "SET #status = :to REMOVE exp", object{"#status": "status"}, object{":to": text("running")}
	case 8:
		expression, values = "SET tat = exp, exp = tat - :n", object{":n": n}
	}
	in["UpdateExpression"] = expression
	return expressed(in, names, values)
}

func (g requests) put() object {
	in := g.place(object{}, "Item")
	maps.Copy(in["Item"].(object), g.item())
	return g.condition(in)
}

func (g requests) projection(in object) object {
	switch oneOf(g.T, 0, 1, 2) {
	case 1:
		in["ProjectionExpression"] = "pk, seal.key_arn, tat, absent"
	case 2:
		in["ProjectionExpression"], in["ExpressionAttributeNames"] = "#a0, #a1.#a2, #a3", object{"#a0": "status", "#a1": "next", "#a2": "openai", "#a3": "models"}
	}
	return in
}

// draw generates one request.
func (g requests) draw() request {
	switch kind := oneOf(g.T, "PutItem", "PutItem", "UpdateItem", "UpdateItem", "DeleteItem", "GetItem", "Query", "Scan", "BatchGetItem", "BatchWriteItem", "TransactWriteItems", "TransactWriteItems"); kind {
	case "PutItem":
		in := g.put()
		in["ReturnValues"] = oneOf(g.T, "NONE", "ALL_OLD")
		return request{kind, in}
	case "UpdateItem":
		in := g.condition(g.update(g.place(object{}, "Key")))
		in["ReturnValues"] = oneOf(g.T, "NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW")
		return request{kind, in}
	case "DeleteItem":
		in := g.condition(g.place(object{}, "Key"))
		in["ReturnValues"] = oneOf(g.T, "NONE", "ALL_OLD")
		return request{kind, in}
	case "GetItem":
		return request{kind, g.projection(g.place(object{"ConsistentRead": true}, "Key"))}
	case "Query":
		return request{kind, g.query()}
	case "Scan":
		return request{kind, object{
			"TableName": "access", "ConsistentRead": true, "FilterExpression": "begins_with(pk, :prefix) AND sk = :sort",
			"ExpressionAttributeValues": object{":prefix": text(g.run), ":sort": g.sk()},
		}}
	case "BatchGetItem":
		keys := g.distinct(1, 4)
		in := g.projection(object{"Keys": keys, "ConsistentRead": true})
		return request{kind, object{"RequestItems": object{"access": in}}}
	case "BatchWriteItem":
		var writes []object
		for _, key := range g.distinct(1, 4) {
			if oneOf(g.T, true, false) {
				writes = append(writes, object{"DeleteRequest": object{"Key": key}})
				continue
			}
			maps.Copy(key, g.item())
			writes = append(writes, object{"PutRequest": object{"Item": key}})
		}
		return request{kind, object{"RequestItems": object{"access": writes}}}
	default:
		return request{kind, g.transaction()}
	}
}

// distinct returns different primary keys of the access table.
func (g requests) distinct(least, most int) []object {
	keys := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) [2]string {
		return [2]string{oneOf(t, "key#1", "workspace#1", "workspace#2"), oneOf(t, "key", "credential#1", "credential#2", "workspace")}
	}), least, most, rapid.ID).Draw(g.T, "keys")
	var out []object
	for _, key := range keys {
		out = append(out, object{"pk": text(g.run + key[0]), "sk": text(key[1])})
	}
	return out
}

func (g requests) query() object {
	in := object{
		"TableName": "access", "ConsistentRead": true, "KeyConditionExpression": "pk = :pk AND begins_with(sk, :prefix)",
		"ExpressionAttributeValues": object{":pk": g.pk(), ":prefix": text("credential#")},
	}
	switch oneOf(g.T, 0, 1, 2) {
	case 1:
		in["KeyConditionExpression"], in["ExpressionAttributeValues"] = "pk = :pk", object{":pk": g.pk()}
	case 2:
		in["FilterExpression"] = "account = :account"
		expressed(in, nil, object{":account": text("a1")})
	}
	if oneOf(g.T, true, false) {
		in["Limit"] = oneOf(g.T, 1, 2, 3)
	}
	if oneOf(g.T, true, false) {
		in["ScanIndexForward"] = oneOf(g.T, true, false)
	}
	if oneOf(g.T, true, false, false) {
		in["ExclusiveStartKey"] = object{"pk": in["ExpressionAttributeValues"].(object)[":pk"], "sk": text("credential#1")}
	}
	if oneOf(g.T, true, false, false) {
		in["ReturnConsumedCapacity"] = "TOTAL"
	}
	if oneOf(g.T, true, false, false, false) {
		in["Select"] = "COUNT" // without a projection
		return in
	}
	return g.projection(in)
}

func (g requests) transaction() object {
	var items []object
	for _, key := range g.distinct(1, 3) {
		switch oneOf(g.T, 0, 1, 2, 3) {
		case 0:
			maps.Copy(key, g.item())
			items = append(items, object{"Put": g.condition(object{"TableName": "access", "Item": key})})
		case 1:
			items = append(items, object{"Update": g.condition(g.update(object{"TableName": "access", "Key": key}))})
		case 2:
			items = append(items, object{"Delete": g.condition(object{"TableName": "access", "Key": key})})
		case 3:
			items = append(items, object{"ConditionCheck": object{
				"TableName": "access", "Key": key, "ConditionExpression": "account = :account", "ExpressionAttributeValues": object{":account": text("a1")},
				"ReturnValuesOnConditionCheckFailure": oneOf(g.T, "ALL_OLD", "NONE"),
			}})
		}
	}
	return object{"TransactItems": items, "ClientRequestToken": strings.ReplaceAll(g.run, "#", "")[:30] + oneOf(g.T, "1", "2", "3", "4", "5", "6")}
}

// unordered sorts the lists of a response that have no order.
func unordered(operation string, out object) object {
	sorted := func(list []any) {
		slices.SortFunc(list, func(a, b any) int {
			x, _ := json.Marshal(a)
			y, _ := json.Marshal(b)
			return strings.Compare(string(x), string(y))
		})
	}
	if items, ok := out["Items"].([]any); ok && operation == "Scan" {
		sorted(items)
		delete(out, "ScannedCount") // of all runs together
	}
	if tables, ok := out["Responses"].(object); ok {
		for _, items := range tables {
			sorted(items.([]any))
		}
	}
	return out
}

func TestDynamoDBSequences(t *testing.T) {
	fake, real, _ := sides(t)
	rapid.Check(t, func(rt *rapid.T) {
		g := requests{rt, string(ids.New[ids.Workspace]()) + "#"}
		for range rapid.IntRange(1, 30).Draw(rt, "length") {
			r := g.draw()
			got := unordered(r.operation, fake.call(t, "DynamoDB_20120810."+r.operation, r.in))
			want := unordered(r.operation, real.call(t, "DynamoDB_20120810."+r.operation, r.in))
			diff, diverged := differ("SIGNALBOX_DYNAMODB", r.operation, r.in, want, got)
			if diff != "" {
				rt.Fatalf("%s: engine -, model +\n%s", r, diff)
			}
			if diverged {
				return
			}
		}
	})
}
