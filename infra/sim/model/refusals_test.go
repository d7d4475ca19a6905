package model_test

import (
	"maps"
	"strings"
	"testing"

	"signalbox.dev/shared/ids"
)

// refusals are requests to DynamoDB that are wrong, by the name of what is
// wrong. Each meets the item below, of which pk and sk are set.
var refusals = map[string]request{
	"unused value":                      {"UpdateItem", object{"UpdateExpression": "SET a = :a", "ExpressionAttributeValues": object{":a": number(1), ":b": number(2)}}},
	"unused name":                       {"UpdateItem", object{"UpdateExpression": "REMOVE a", "ExpressionAttributeNames": object{"#b": "b"}}},
	"undefined value":                   {"UpdateItem", object{"UpdateExpression": "SET a = :a"}},
	"undefined name":                    {"UpdateItem", object{"UpdateExpression": "SET #a = :a", "ExpressionAttributeValues": object{":a": number(1)}}},
	"values without expression":         {"PutItem", object{"ExpressionAttributeValues": object{":a": number(1)}}},
	"names without expression":          {"GetItem", object{"ExpressionAttributeNames": object{"#a": "a"}}},
	"no values":                         {"UpdateItem", object{"UpdateExpression": "REMOVE a", "ExpressionAttributeValues": object{}}},
	"no names":                          {"UpdateItem", object{"UpdateExpression": "REMOVE a", "ExpressionAttributeNames": object{}}},
	"reserved word in update":           {"UpdateItem", object{"UpdateExpression": "SET status = :a", "ExpressionAttributeValues": object{":a": number(1)}}},
	"reserved word in condition":        {"DeleteItem", object{"ConditionExpression": "attribute_exists(Next)"}},
	"reserved word in projection":       {"GetItem", object{"ProjectionExpression": "pk, name"}},
	"reserved word in path":             {"GetItem", object{"ProjectionExpression": "seal.key"}},
	"empty condition":                   {"DeleteItem", object{"ConditionExpression": ""}},
	"empty update":                      {"UpdateItem", object{"UpdateExpression": ""}},
	"syntax":                            {"DeleteItem", object{"ConditionExpression": "attribute_exists(pk) AND"}},
	"unknown function":                  {"DeleteItem", object{"ConditionExpression": "exists(pk)"}},
	"function of a value":               {"DeleteItem", object{"ConditionExpression": "attribute_exists(:a)", "ExpressionAttributeValues": object{":a": text("x")}}},
	"too few operands":                  {"DeleteItem", object{"ConditionExpression": "begins_with(sk)"}},
	"too many operands":                 {"DeleteItem", object{"ConditionExpression": "attribute_exists(pk, sk)"}},
	"prefix of a number":                {"DeleteItem", object{"ConditionExpression": "begins_with(sk, :a)", "ExpressionAttributeValues": object{":a": number(1)}}},
	"order of a boolean":                {"DeleteItem", object{"ConditionExpression": "a < :a", "ExpressionAttributeValues": object{":a": boolean(true)}}},
	"sum with text":                     {"UpdateItem", object{"UpdateExpression": "SET a = a + :a", "ExpressionAttributeValues": object{":a": text("1")}}},
	"sum of text":                       {"UpdateItem", object{"UpdateExpression": "SET a = word + :a", "ExpressionAttributeValues": object{":a": number(1)}}},
	"sum of nothing":                    {"UpdateItem", object{"UpdateExpression": "SET a = absent + :a", "ExpressionAttributeValues": object{":a": number(1)}}},
	"copy of nothing":                   {"UpdateItem", object{"UpdateExpression": "SET a = absent"}},
	"member of nothing":                 {"UpdateItem", object{"UpdateExpression": "SET absent.b = :a", "ExpressionAttributeValues": object{":a": number(1)}}},
	"member of text":                    {"UpdateItem", object{"UpdateExpression": "SET word.b = :a", "ExpressionAttributeValues": object{":a": number(1)}}},
	"removal of a member of nothing":    {"UpdateItem", object{"UpdateExpression": "REMOVE absent.b"}},
	"overlapping paths":                 {"UpdateItem", object{"UpdateExpression": "SET m = :a, m.b = :a", "ExpressionAttributeValues": object{":a": number(1)}}},
	"a section twice":                   {"UpdateItem", object{"UpdateExpression": "SET a = :a SET b = :a", "ExpressionAttributeValues": object{":a": number(1)}}},
	"update of the key":                 {"UpdateItem", object{"UpdateExpression": "SET sk = :a", "ExpressionAttributeValues": object{":a": text("x")}}},
	"condition's function in an update": {"UpdateItem", object{"UpdateExpression": "SET a = attribute_exists(b)"}},
	"update's function in a condition":  {"DeleteItem", object{"ConditionExpression": "if_not_exists(a, :a) = :a", "ExpressionAttributeValues": object{":a": number(1)}}},
	"missing sort key":                  {"GetItem", object{"Key": object{"pk": text("x")}}},
	"key of another type":               {"GetItem", object{"Key": object{"pk": text("x"), "sk": number(1)}}},
	"more than the key":                 {"GetItem", object{"Key": object{"pk": text("x"), "sk": text("x"), "a": text("x")}}},
	"empty key":                         {"GetItem", object{"Key": object{"pk": text("x"), "sk": text("")}}},
	"item without sort key":             {"PutItem", object{"Item": object{"pk": text("x")}}},
	"item with a key of another type":   {"PutItem", object{"Item": object{"pk": text("x"), "sk": number(1)}}},
	"item with an empty key":            {"PutItem", object{"Item": object{"pk": text("x"), "sk": text("")}}},
	"item with a long partition key":    {"PutItem", object{"Item": object{"pk": text(strings.Repeat("x", 2049)), "sk": text("x")}}},
	"item with a long sort key":         {"PutItem", object{"Item": object{"pk": text("x"), "sk": text(strings.Repeat("x", 1025))}}},
	"item of 400 KB":                    {"PutItem", object{"Item": object{"pk": text("x"), "sk": text("x"), "a": text(strings.Repeat("x", 400<<10))}}},
	"update to 400 KB":                  {"UpdateItem", object{"UpdateExpression": "SET a = :a", "ExpressionAttributeValues": object{":a": text(strings.Repeat("x", 400<<10))}}},
	"null that is false":                {"PutItem", object{"Item": object{"pk": text("x"), "sk": text("x"), "a": object{"NULL": false}}}},
	"value without type":                {"PutItem", object{"Item": object{"pk": text("x"), "sk": text("x"), "a": object{}}}},
	"unknown table":                     {"GetItem", object{"TableName": "absent"}},
	"repeated key in a batch":           {"BatchGetItem", object{"RequestItems": object{"access": object{"Keys": []object{{"pk": text("x"), "sk": text("x")}, {"pk": text("x"), "sk": text("x")}}}}}},
	"empty batch":                       {"BatchGetItem", object{"RequestItems": object{}}},
	"empty batch of writes":             {"BatchWriteItem", object{"RequestItems": object{}}},
	"one item twice in a transaction": {"TransactWriteItems", object{"TransactItems": []object{
		{"Delete": object{"TableName": "access", "Key": object{"pk": text("x"), "sk": text("x")}}},
		{"ConditionCheck": object{"TableName": "access", "Key": object{"pk": text("x"), "sk": text("x")}, "ConditionExpression": "attribute_exists(pk)"}},
	}}},
	"empty transaction":               {"TransactWriteItems", object{"TransactItems": []object{}}},
	"transaction with a wrong key":    {"TransactWriteItems", object{"TransactItems": []object{{"Delete": object{"TableName": "access", "Key": object{"pk": text("x")}}}}}},
	"transaction with an empty key":   {"TransactWriteItems", object{"TransactItems": []object{{"Delete": object{"TableName": "access", "Key": object{"pk": text("x"), "sk": text("")}}}}}},
	"transaction with a wrong update": {"TransactWriteItems", object{"TransactItems": []object{{"Update": object{"TableName": "access", "Key": object{"pk": text("x"), "sk": text("x")}, "UpdateExpression": "SET status = absent"}}}}},
}

func TestDynamoDBRefusals(t *testing.T) {
	fake, real, _ := sides(t)
	for name, r := range refusals {
		t.Run(name, func(t *testing.T) {
			key := object{"pk": text("refusals#" + string(ids.New[ids.Workspace]())), "sk": text("x")}
			item := maps.Clone(key)
			maps.Copy(item, object{"a": number(1), "word": text("w"), "m": object{"M": object{"b": number(1)}}})
			in := object{}
			switch r.operation {
			case "GetItem", "UpdateItem", "DeleteItem":
				in["Key"] = key
				fallthrough
			case "PutItem", "Query":
				in["TableName"] = "access"
			}
			if r.operation == "PutItem" {
				in["Item"] = key
			}
			maps.Copy(in, r.in)
			var out [2]object
			for i, s := range []side{real, fake} {
				s.call(t, "DynamoDB_20120810.PutItem", object{"TableName": "access", "Item": item})
				out[i] = s.call(t, "DynamoDB_20120810."+r.operation, in)
			}
			switch out[1]["__type"] {
			case nil:
				t.Errorf("the model accepts it: %v", out[1])
			}
			diff, _ := differ("SIGNALBOX_DYNAMODB", name, out[0], out[1])
			switch _, listed := refused[engineName("SIGNALBOX_DYNAMODB")][name]; {
			case diff != "" && !listed:
				t.Errorf("engine -, model +\n%s", diff)
			case diff == "" && listed:
				t.Error("the engine refuses it as the model does: strike it from the list of differences")
			}
		})
	}
}
