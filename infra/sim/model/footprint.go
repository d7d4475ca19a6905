package model

import (
	"encoding/json"
	"encoding/xml"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Label names a request for a reader: its service, operation and item.
type Label struct {
	Service   string // DynamoDB, KMS or S3
	Operation string // such as PutItem
	Item      string // such as access/key#…/key; several are joined by " + "
}

// Touch is an item that a request reads or writes.
type Touch struct {
	// Item names it: table/pk/sk, bucket/key, kms/ARN or token/….
	Item string
	// Prefix means all items with a name that begins with Item.
	Prefix bool
	Write  bool
}

// Commute reports whether two requests with these footprints have the same effects and
// responses in either order: they share no item, or both only read the shared items.
func Commute(a, b []Touch) bool {
	for _, x := range a {
		for _, y := range b {
			shares := x.Item == y.Item || x.Prefix && strings.HasPrefix(y.Item, x.Item) || y.Prefix && strings.HasPrefix(x.Item, y.Item)
			if shares && (x.Write || y.Write) {
				return false
			}
		}
	}
	return true
}

// Footprint names a request and the items that it touches. The key attributes of every
// table are pk and sk. A request that cannot be read touches nothing: the World
// refuses it.
func Footprint(r *http.Request, body []byte) (Label, []Touch) {
	protocol, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	var service string
	var touches []Touch
	switch protocol {
	case dynamoDBTarget:
		service, touches = "DynamoDB", dynamoDBTouches(operation, body)
	case kmsTarget:
		service, touches = "KMS", kmsTouches(operation, body)
	default:
		service = "S3"
		operation, touches = s3Touches(r, body)
	}
	var names []string
	for _, t := range touches {
		if !strings.HasPrefix(t.Item, tokenPrefix) {
			names = append(names, t.Item+strings.Repeat("*", map[bool]int{true: 1}[t.Prefix]))
		}
	}
	return Label{service, operation, strings.Join(names, " + ")}, touches
}

const tokenPrefix = "token/"

// keys are the key attributes of an item.
type keys struct{ PK, SK struct{ S *string } }

func (k keys) in(table string) (name string) {
	name = table
	for _, value := range []*string{k.PK.S, k.SK.S} {
		if value != nil {
			name += "/" + *value
		}
	}
	return name
}

// target is the item that a read or a write names, by its key or in whole.
type target struct {
	TableName string
	Key, Item keys
}

func (t target) in(table string) string {
	if t.Item.PK.S != nil {
		return t.Item.in(table)
	}
	return t.Key.in(table)
}

func dynamoDBTouches(operation string, body []byte) (touches []Touch) {
	var in struct {
		target
		RequestItems       json.RawMessage
		TransactItems      []map[string]target
		ClientRequestToken string
	}
	if json.Unmarshal(body, &in) != nil {
		return nil
	}
	switch operation {
	case "GetItem":
		return []Touch{{Item: in.in(in.TableName)}}
	case "PutItem", "UpdateItem", "DeleteItem":
		return []Touch{{Item: in.in(in.TableName), Write: true}}
	case "Scan":
		return []Touch{{Item: in.TableName + "/", Prefix: true}}
	case "Query":
		return []Touch{queried(body)}
	case "TransactWriteItems":
		for _, item := range in.TransactItems {
			for kind, p := range item {
				touches = append(touches, Touch{Item: p.in(p.TableName), Write: kind != "ConditionCheck"})
			}
		}
		return append(touches, Touch{Item: tokenPrefix + in.ClientRequestToken, Write: true})
	}
	return batchTouches(operation, in.RequestItems)
}

// queried is the part of the table that a Query reads: a partition, or its items with a
// prefix of the sort key.
func queried(body []byte) Touch {
	var in struct {
		write
		KeyConditionExpression *string
	}
	if json.Unmarshal(body, &in) != nil {
		return Touch{Prefix: true}
	}
	all := Touch{Item: in.TableName + "/", Prefix: true}
	n, err := condition("KeyConditionExpression", in.KeyConditionExpression, newPlaceholders(in.ExpressionAttributeNames, in.ExpressionAttributeValues))
	if err != nil || n == nil {
		return all
	}
	pk, rest, err := (&table{TableSchema: TableSchema{PK: "pk", SK: "sk"}}).keyCondition(n)
	if err != nil {
		return all
	}
	all.Item += pk + "/"
	if rest != nil && rest.operator == "begins_with" {
		if prefix, ok := rest.operands[1].value.AttributeValue.(*types.AttributeValueMemberS); ok {
			all.Item += prefix.Value
		}
	}
	return all
}

func batchTouches(operation string, requests json.RawMessage) (touches []Touch) {
	var reads map[string]struct{ Keys []keys }
	var writes map[string][]map[string]target
	if operation == "BatchGetItem" && json.Unmarshal(requests, &reads) == nil {
		for table, in := range reads {
			for _, key := range in.Keys {
				touches = append(touches, Touch{Item: key.in(table)})
			}
		}
	}
	if operation == "BatchWriteItem" && json.Unmarshal(requests, &writes) == nil {
		for table, all := range writes {
			for _, one := range all {
				for _, p := range one {
					touches = append(touches, Touch{Item: p.in(table), Write: true})
				}
			}
		}
	}
	slices.SortFunc(touches, func(a, b Touch) int { return strings.Compare(a.Item, b.Item) })
	return touches
}

func kmsTouches(operation string, body []byte) (touches []Touch) {
	var in struct{ KeyID, SourceKeyID, DestinationKeyID string }
	if json.Unmarshal(body, &in) != nil {
		return nil
	}
	reads := slices.Contains([]string{"GenerateDataKey", "Decrypt", "ReEncrypt", "DescribeKey"}, operation)
	for _, arn := range []string{in.KeyID, in.SourceKeyID, in.DestinationKeyID} {
		if arn != "" {
			touches = append(touches, Touch{Item: "kms/" + arn, Write: !reads})
		}
	}
	if touches == nil { // the ciphertext alone names the key
		return []Touch{{Item: "kms/", Prefix: true, Write: !reads}}
	}
	return touches
}

func s3Touches(r *http.Request, body []byte) (operation string, touches []Touch) {
	query := r.URL.Query()
	path := strings.TrimPrefix(r.URL.Path, "/")
	if host, _, ok := strings.Cut(r.URL.Host, ".s3."); ok {
		path = host + "/" + path
	}
	bucket, _, _ := strings.Cut(path, "/")
	switch {
	case r.Method == http.MethodGet && query.Has("versions"):
		return "ListObjectVersions", []Touch{{Item: bucket + "/" + query.Get("prefix"), Prefix: true}}
	case r.Method == http.MethodGet && query.Has("list-type"):
		return "ListObjectsV2", []Touch{{Item: bucket + "/" + query.Get("prefix"), Prefix: true}}
	case r.Method == http.MethodPost && query.Has("delete"):
		var in struct{ Object []objectIdentifier }
		content, failure := payload(r, body)
		if failure != nil || xml.Unmarshal(content, &in) != nil {
			return "DeleteObjects", nil
		}
		for _, o := range in.Object {
			touches = append(touches, Touch{Item: bucket + "/" + o.Key, Write: true})
		}
		slices.SortFunc(touches, func(a, b Touch) int { return strings.Compare(a.Item, b.Item) })
		return "DeleteObjects", slices.Compact(touches)
	}
	operation = map[string]string{
		http.MethodPut: "PutObject", http.MethodDelete: "DeleteObject",
	}[r.Method]
	return operation, []Touch{{Item: path, Write: r.Method == http.MethodPut || r.Method == http.MethodDelete}}
}
