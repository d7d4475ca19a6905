package awsmodel_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/ids"
)

// access is a table of the kit with a partition and a sort key.
const access = "signalbox-access"

func text(s string) object  { return object{"S": s} }
func number(n int) object   { return object{"N": fmt.Sprint(n)} }
func boolean(b bool) object { return object{"BOOL": b} }

// requests generates requests of the product's kinds. They use few items and so affect
// each other. The partition keys begin with run.
type requests struct {
	*rapid.T
	run string
}

// key is one of the primary keys of the access table.
func (g requests) key() object { return g.keys(1)[0] }

// keys are different primary keys.
func (g requests) keys(most int) (keys []object) {
	for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 5), 1, most, rapid.ID).Draw(g.T, "keys") {
		pk, sk := []string{"workspace#1", "workspace#2"}[n%2], []string{"workspace", "credential#1", "credential#2"}[n/2]
		keys = append(keys, object{"pk": text(g.run + pk), "sk": text(sk)})
	}
	return keys
}

// item adds attributes to a primary key.
func (g requests) item(key object) object {
	key["v"] = number(1)
	attributes := map[string]object{
		"account": g.value(":s"), "status": g.value(":s"), "default_workspace": g.value(":s"), "disabled": g.value(":b"),
		"exp": g.value(":n"), "tat": g.value(":n"), "sort_order": g.value(":n"), "deleted_at": g.value(":n"),
		"next": {"M": oneOf(g.T, object{}, object{"openai": number(3)})}, "models": {"L": []any{text("m"), object{"NULL": true}}},
		"seal": {"M": object{"key_arn": g.value(":s"), "wrapped_key": g.value(":x")}},
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if oneOf(g.T, true, false) {
			key[name] = attributes[name]
		}
	}
	return key
}

var placeholder = regexp.MustCompile(`[#:]\w+`)

// with adds an expression and its placeholders to the request. It adds nothing for "".
func (g requests) with(in object, member, expression string) object {
	if expression == "" {
		return in
	}
	in[member] = expression
	for _, name := range placeholder.FindAllString(expression, -1) {
		kind, value := "ExpressionAttributeNames", any(name[1:])
		if name[0] == ':' {
			kind, value = "ExpressionAttributeValues", g.value(name)
		}
		if in[kind] == nil {
			in[kind] = object{}
		}
		in[kind].(object)[name] = value
	}
	return in
}

// value is the value of a placeholder. The first letter of its name is its type.
func (g requests) value(name string) object {
	switch {
	case name == ":pk":
		return g.key()["pk"].(object)
	case name == ":credential":
		return text("credential#")
	case name[1] == 'n':
		return number(oneOf(g.T, 0, 1, 20))
	case name[1] == 'b':
		return boolean(oneOf(g.T, true, false))
	case name[1] == 'x':
		return object{"B": []byte(oneOf(g.T, "x", "y"))}
	default:
		return text(oneOf(g.T, "a1", "a2", "k1", "queued", "running", "w1"))
	}
}

// conditional adds a condition of the product's, or a random one over the same
// operators.
func (g requests) conditional(in object) object {
	if oneOf(g.T, true, false) {
		in["ReturnValuesOnConditionCheckFailure"] = oneOf(g.T, "ALL_OLD", "NONE")
	}
	operands := 0
	return g.with(in, "ConditionExpression", oneOf(g.T,
		"", "attribute_not_exists(pk)", "attribute_exists(pk)", "attribute_not_exists(pk) OR exp <= :n1",
		"attribute_exists(pk) AND (attribute_not_exists(#next.openai) OR #next.openai < :n1)",
		"account = :s1 AND #status IN (:s2, :s3)", "attribute_not_exists(default_workspace) OR default_workspace <> :s1",
		"NOT (account = :s1 AND v = :n1 AND attribute_not_exists(deleted_at))",
		g.expression(3, &operands), g.expression(3, &operands),
	))
}

// expression is a random condition of a depth.
func (g requests) expression(depth int, operands *int) string {
	if depth == 0 || oneOf(g.T, true, false) {
		path := oneOf(g.T, "tat", "exp", "account", "disabled", "seal.key_arn", "#status", "models", "absent")
		constant := func() string {
			*operands++
			return fmt.Sprintf(":%s%d", oneOf(g.T, "n", "s"), *operands)
		}
		switch oneOf(g.T, 0, 1, 2) {
		case 0:
			return "attribute_exists(" + path + ")"
		case 1:
			return path + " IN (" + constant() + ", " + constant() + ")"
		}
		return path + " " + oneOf(g.T, "=", "<>", "<", "<=", ">") + " " + constant()
	}
	left, right := g.expression(depth-1, operands), oneOf(g.T, " AND ", " OR ")+g.expression(depth-1, operands)
	return oneOf(g.T, "NOT "+left, left+right, "("+left+right+") OR attribute_exists(pk)")
}

// update adds an update expression of the product's.
func (g requests) update(in object) object {
	return g.with(in, "UpdateExpression", oneOf(g.T,
		"SET tat = :n8, exp = :n9", "SET tat = tat + :n8, exp = :n9", "SET tat = exp, exp = tat",
		"SET #next.openai = if_not_exists(#next.openai, :n8) + :n9", "SET #next.#openai = :n9", "SET disabled = :b9",
		"SET seal.key_arn = :s8, seal.wrapped_key = :x9", "SET #status = :s9 REMOVE exp", "REMOVE default_workspace, tat",
		"SET tat = account + :n9", "SET account.openai = :n9",
	))
}

func (g requests) projection(in object) object {
	return g.with(in, "ProjectionExpression", oneOf(g.T, "", "pk, seal.key_arn, tat, absent", "#status, #next.#openai, #models"))
}

// write is one write of a kind, to an item of the access table or of the control table,
// which has no sort key.
func (g requests) write(kind string, key object) object {
	in := object{"TableName": access, "Key": key}
	if kind != "ConditionCheck" && oneOf(g.T, true, false, false) {
		key["pk"] = text(fmt.Sprint(key["pk"].(object)["S"], key["sk"].(object)["S"]))
		delete(key, "sk")
		in["TableName"] = "control"
	}
	switch kind {
	case "Put":
		delete(in, "Key")
		in["Item"] = g.item(key)
	case "Update":
		g.update(in)
	case "ConditionCheck":
		return g.with(in, "ConditionExpression", "account = :s1")
	}
	return g.conditional(in)
}

// draw generates one request.
func (g requests) draw() (operation string, in object) {
	switch operation = oneOf(g.T, "PutItem", "PutItem", "UpdateItem", "UpdateItem", "DeleteItem", "GetItem", "Query", "Scan", "BatchGetItem", "BatchWriteItem", "TransactWriteItems", "TransactWriteItems"); operation {
	case "GetItem":
		return operation, g.projection(object{"TableName": access, "Key": g.key(), "ConsistentRead": true})
	case "Query":
		in = object{"TableName": access, "ConsistentRead": true}
		if oneOf(g.T, true, false) {
			in["ReturnConsumedCapacity"] = "TOTAL"
		}
		g.with(in, "KeyConditionExpression", oneOf(g.T, "pk = :pk AND begins_with(sk, :credential)", "pk = :pk"))
		if oneOf(g.T, true, false, false, false) {
			in["Select"] = "COUNT" // without a projection
			return operation, in
		}
		return operation, g.projection(in)
	case "Scan":
		return operation, object{"TableName": access, "ConsistentRead": true}
	case "BatchGetItem":
		return operation, object{"RequestItems": object{access: g.projection(object{"Keys": g.keys(4), "ConsistentRead": true})}}
	case "BatchWriteItem":
		var deletions []object
		for _, key := range g.keys(4) {
			deletions = append(deletions, object{"DeleteRequest": object{"Key": key}})
		}
		return operation, object{"RequestItems": object{access: deletions}}
	case "TransactWriteItems":
		var items []object
		for _, key := range g.keys(3) {
			kind := oneOf(g.T, "Put", "Update", "Delete", "ConditionCheck")
			items = append(items, object{kind: g.write(kind, key)})
		}
		token := strings.ReplaceAll(g.run, "#", "")[:30] + oneOf(g.T, "1", "2")
		return operation, object{"TransactItems": items, "ClientRequestToken": token}
	default:
		in = g.write(strings.TrimSuffix(operation, "Item"), g.key())
		if operation == "UpdateItem" {
			in["ReturnValues"] = oneOf(g.T, "NONE", "UPDATED_NEW")
		}
		return operation, in
	}
}

// unordered sorts the lists of a response that have no order.
func unordered(run, operation string, out object) object {
	sorted := func(list []any) {
		slices.SortFunc(list, func(a, b any) int {
			x, _ := json.Marshal(a)
			y, _ := json.Marshal(b)
			return strings.Compare(string(x), string(y))
		})
	}
	if items, ok := out["Items"].([]any); ok && operation == "Scan" {
		// The items of other runs are in the engine's table too.
		items = slices.DeleteFunc(items, func(item any) bool { return !strings.HasPrefix(item.(object)["pk"].(object)["S"].(string), run) })
		sorted(items)
		out = object{"Items": items}
	}
	if tables, ok := out["Responses"].(object); ok {
		for _, items := range tables {
			sorted(items.([]any))
		}
	}
	return out
}

// A Query ends its page before the item that passes 1 MB, and names the capacity of all that
// it read.
func TestQueriesOfLargeItems(t *testing.T) {
	fake, real := sides(kit.Start(t))
	pk, put := text(string(ids.New[ids.Workspace]())), 0
	for _, size := range []int{0, 1, 3000, 1100, 4000, 90_000, 350_000, 350_000, 240_000, 350_000, 350_000, 350_000, 100} {
		put++
		item := object{
			"pk": pk, "sk": text(fmt.Sprintf("credential#%02d", put)), "text": text(strings.Repeat("x", size)), "n": number(-1200 + size), "b": boolean(true), "none": object{"NULL": true},
			"seal": object{"M": object{"key": object{"B": []byte(strings.Repeat("y", size%7))}, "list": object{"L": []any{text("é"), number(0)}}}},
		}
		in := object{"TableName": access, "ConsistentRead": true, "KeyConditionExpression": "pk = :pk AND begins_with(sk, :credential)", "ReturnConsumedCapacity": "TOTAL",
			"ExpressionAttributeValues": object{":pk": pk, ":credential": text("credential#")}}
		for _, s := range []side{fake, real} {
			s.call(t, "DynamoDB_20120810.PutItem", object{"TableName": access, "Item": item})
			defer s.call(t, "DynamoDB_20120810.DeleteItem", object{"TableName": access, "Key": object{"pk": pk, "sk": item["sk"]}}) // other tests scan the table
		}
		for page := 1; ; page++ {
			in["Select"] = []string{"COUNT", "ALL_ATTRIBUTES"}[put%2]
			got, want := fake.call(t, "DynamoDB_20120810.Query", in), real.call(t, "DynamoDB_20120810.Query", in)
			diff, diverged := differ("SIGNALBOX_DYNAMODB", "Query of large items", want, got)
			if diff != "" {
				t.Fatalf("%d items, page %d: engine -, model +\n%.3000s", put, page, diff)
			}
			if in["ExclusiveStartKey"] = got["LastEvaluatedKey"]; in["ExclusiveStartKey"] == nil || diverged {
				break
			}
		}
	}
}

func TestDynamoDBSequences(t *testing.T) {
	fake, real := sides(kit.Start(t))
	compare(t, "SIGNALBOX_DYNAMODB", func(rt *rapid.T) (side, side, func() (string, func(side) object)) {
		g := requests{rt, string(ids.New[ids.Workspace]()) + "#"}
		return fake, real, func() (string, func(side) object) {
			operation, in := g.draw()
			text, _ := json.Marshal(in)
			return operation + " " + string(text), func(s side) object {
				return unordered(g.run, operation, s.call(t, "DynamoDB_20120810."+operation, in))
			}
		}
	})
}
