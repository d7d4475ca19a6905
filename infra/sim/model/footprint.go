package model

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"net/http"
	"slices"
	"strings"
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
	target := r.Header.Get("X-Amz-Target")
	label := Label{Service: "S3"}
	var touches []Touch
	if operation, ok := strings.CutPrefix(target, dynamoDBTarget); ok {
		label.Service, label.Operation = "DynamoDB", operation
		touches = dynamoDBTouches(operation, body)
	} else if operation, ok := strings.CutPrefix(target, kmsTarget); ok {
		label.Service, label.Operation = "KMS", operation
		touches = []Touch{{Item: "kms/", Prefix: true}}
		var in struct{ KeyID string }
		if json.Unmarshal(body, &in) == nil && in.KeyID != "" {
			touches = []Touch{{Item: "kms/" + in.KeyID}}
		}
	} else {
		label.Operation, touches = s3Touches(r, body)
	}
	var names []string
	for _, t := range touches {
		switch {
		case t.Prefix:
			names = append(names, t.Item+"*")
		case !strings.HasPrefix(t.Item, tokenPrefix):
			names = append(names, t.Item)
		}
	}
	label.Item = strings.Join(names, " + ")
	return label, touches
}

const tokenPrefix = "token/"

// name names the item with a primary key, which may have other attributes.
func (i wire) name(table string) string {
	for _, attribute := range []string{"pk", "sk"} {
		if v, ok := i[attribute]; ok {
			table += "/" + textOf(v)
		}
	}
	return table
}

func dynamoDBTouches(operation string, body []byte) (touches []Touch) {
	if operation == "BatchWriteItem" {
		var in batchWrite
		_ = json.Unmarshal(body, &in) // the World refuses what it cannot read
		for table, requests := range in.RequestItems {
			for _, one := range requests {
				touches = append(touches, Touch{Item: one.DeleteRequest.Key.name(table), Write: true})
			}
		}
		slices.SortFunc(touches, func(a, b Touch) int { return strings.Compare(a.Item, b.Item) })
		return touches
	}
	var in struct {
		input
		RequestItems       map[string]input
		TransactItems      []map[string]input
		ClientRequestToken string
	}
	if json.Unmarshal(body, &in) != nil {
		return nil
	}
	switch operation {
	case "GetItem":
		return []Touch{{Item: in.Key.name(in.TableName)}}
	case "PutItem":
		return []Touch{{Item: in.Item.name(in.TableName), Write: true}}
	case "UpdateItem", "DeleteItem":
		return []Touch{{Item: in.Key.name(in.TableName), Write: true}}
	case "Scan":
		return []Touch{{Item: in.TableName + "/", Prefix: true}}
	case "Query":
		return []Touch{queried(in.input)}
	case "BatchGetItem":
		for table, reads := range in.RequestItems {
			for _, key := range reads.Keys {
				touches = append(touches, Touch{Item: key.name(table)})
			}
		}
		slices.SortFunc(touches, func(a, b Touch) int { return strings.Compare(a.Item, b.Item) })
	case "TransactWriteItems":
		for _, item := range in.TransactItems {
			for kind, one := range item {
				key := one.Key
				if kind == "Put" {
					key = one.Item
				}
				touches = append(touches, Touch{Item: key.name(one.TableName), Write: kind != "ConditionCheck"})
			}
		}
		touches = append(touches, Touch{Item: tokenPrefix + in.ClientRequestToken, Write: true})
	}
	return touches
}

// queried is the part of the table that a Query reads: a partition, or its items with a
// prefix of the sort key.
func queried(in input) Touch {
	places := &placeholders{names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues, used: map[string]bool{}}
	keys, err := parse("KeyConditionExpression", in.KeyConditionExpression, places, (*parser).condition)
	if err != nil || keys == nil {
		return Touch{Item: in.TableName + "/", Prefix: true}
	}
	pk, prefix, _ := keys.partition(TableSchema{PK: "pk", SK: "sk"})
	return Touch{Item: in.TableName + "/" + pk + "/" + prefix, Prefix: true}
}

func s3Touches(r *http.Request, body []byte) (operation string, touches []Touch) {
	query := r.URL.Query()
	bucket, _, _ := strings.Cut(r.URL.Host, ".")
	switch {
	case query.Has("versions"):
		return "ListObjectVersions", []Touch{{Item: bucket + "/" + query.Get("prefix"), Prefix: true}}
	case query.Has("list-type"):
		return "ListObjectsV2", []Touch{{Item: bucket + "/" + query.Get("prefix"), Prefix: true}}
	case query.Has("delete"):
		var in deleteInput
		if xml.Unmarshal(body, &in) != nil {
			return "DeleteObjects", nil
		}
		for _, o := range in.Objects {
			touches = append(touches, Touch{Item: bucket + "/" + o.Key, Write: true})
		}
		slices.SortFunc(touches, func(a, b Touch) int { return strings.Compare(a.Item, b.Item) })
		return "DeleteObjects", slices.Compact(touches)
	}
	writes := r.Method == http.MethodPut || r.Method == http.MethodDelete
	return cmp.Or(query.Get("x-id"), r.Method), []Touch{{Item: bucket + r.URL.Path, Write: writes}}
}
