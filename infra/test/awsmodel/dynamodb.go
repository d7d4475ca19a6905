package awsmodel

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
)

const dynamoDBTarget = "DynamoDB_20120810."

const (
	// readUnit is how many bytes a strongly consistent read gets for a unit of capacity.
	readUnit = 4096
	// pageSize is how many bytes a Query or Scan reads at once.
	pageSize = 1 << 20
)

// Units are the capacity units that a table has charged: of reads and of writes.
type Units [2]int

// charge charges a table for the bytes of a read (0) or of a write (1).
func (w *World) charge(table string, which, bytes int) {
	unit, u := [2]int{readUnit, 1024}[which], w.Units[table]
	u[which] += max(1, (bytes+unit-1)/unit)
	w.Units[table] = u
}

// table has the items of a table. Each table has the partition key pk, and perhaps the
// sort key sk.
type table map[primaryKey]Item

// primaryKey is the key of an item. Its sort key is "" if the table has none.
type primaryKey struct{ pk, sk string }

func keyOf(i Item) primaryKey { return primaryKey{textOf(i["pk"]), textOf(i["sk"])} }

func (w *World) table(name string) (table, error) {
	t, ok := w.tables[name]
	if !ok {
		return nil, refusal("ResourceNotFoundException", "Requested resource not found")
	}
	return t, nil
}

// inOrderOfReads is the order in which DynamoDB reads items: by a hash of the partition key,
// then by the sort key.
func inOrderOfReads(a, b primaryKey) int {
	if a.pk == b.pk {
		return strings.Compare(a.sk, b.sk)
	}
	x, y := sha256.Sum256([]byte(a.pk)), sha256.Sum256([]byte(b.pk))
	return bytes.Compare(x[:], y[:])
}

// input has all members of the requests for items of one table.
type input struct {
	TableName                           string
	Item, Key                           Item
	Keys                                []Item
	ConsistentRead                      bool
	ConditionExpression                 *string
	UpdateExpression                    *string
	KeyConditionExpression              *string
	FilterExpression                    *string
	ProjectionExpression                *string
	ExpressionAttributeNames            map[string]string
	ExpressionAttributeValues           Item
	ReturnValues                        string
	ReturnValuesOnConditionCheckFailure string
	Limit                               *int
	ExclusiveStartKey                   Item
	Select, ReturnConsumedCapacity      string
	Segment, TotalSegments              int
}

type getItem struct{ input }

func (in *getItem) apply(w *World) (any, error) {
	in.Keys = []Item{in.Key}
	items, err := w.get(in.input)
	if err != nil || len(items) == 0 {
		return object{}, err
	}
	return object{"Item": items[0]}, nil
}

// get reads items of a table.
func (w *World) get(in input) (items []Item, err error) {
	paths, err := parse(in, in.ProjectionExpression, (*parser).projection)
	if err != nil {
		return nil, err
	}
	t, err := w.table(in.TableName)
	for _, key := range in.Keys {
		w.charge(in.TableName, 0, sizeOf(t[keyOf(key)]))
		if item, ok := t[keyOf(key)]; ok {
			items = append(items, project(item, paths))
		}
	}
	return items, err
}

type batchGetItem struct{ RequestItems map[string]input }

func (in *batchGetItem) apply(w *World) (any, error) {
	responses := map[string][]Item{}
	for name, reads := range in.RequestItems {
		reads.TableName = name
		items, err := w.get(reads)
		if err != nil {
			return nil, err
		}
		responses[name] = append([]Item{}, items...)
	}
	return object{"Responses": responses, "UnprocessedKeys": object{}}, nil
}

// batchWriteItem is the input of a BatchWriteItem that only deletes.
type batchWriteItem struct {
	RequestItems map[string][]struct {
		DeleteRequest struct{ Key Item }
	}
}

func (in *batchWriteItem) apply(w *World) (any, error) {
	for name, writes := range in.RequestItems {
		t, err := w.table(name)
		if err != nil {
			return nil, err
		}
		for _, one := range writes {
			delete(t, keyOf(one.DeleteRequest.Key))
		}
	}
	return object{"UnprocessedItems": object{}}, nil
}

type query struct{ input }

func (in *query) apply(w *World) (any, error) {
	of, err := parse(in.input, in.KeyConditionExpression, (*parser).partition)
	if err != nil {
		return nil, err
	}
	return w.page(in.input, func(k primaryKey) bool { return k.pk == of.pk && strings.HasPrefix(k.sk, of.sk) })
}

type scan struct{ input }

func (in *scan) apply(w *World) (any, error) {
	return w.page(in.input, func(k primaryKey) bool {
		return in.TotalSegments == 0 || int(sha256.Sum256([]byte(k.pk))[0])%in.TotalSegments == in.Segment
	})
}

type describeTable struct{ TableName string }

func (in *describeTable) apply(w *World) (any, error) {
	_, err := w.table(in.TableName)
	return object{"Table": object{"TableName": in.TableName, "TableStatus": "ACTIVE"}}, err
}

// page reads the items with these keys that fit into 1 MB.
func (w *World) page(in input, has func(primaryKey) bool) (any, error) {
	paths, err := parse(in, in.ProjectionExpression, (*parser).projection)
	if err != nil {
		return nil, err
	}
	filter, err := parse(in, in.FilterExpression, (*parser).condition)
	if err != nil {
		return nil, err
	}
	t, err := w.table(in.TableName)
	if err != nil {
		return nil, err
	}
	start := keyOf(in.ExclusiveStartKey)
	keys := slices.DeleteFunc(slices.SortedFunc(maps.Keys(t), inOrderOfReads), func(k primaryKey) bool {
		return !has(k) || in.ExclusiveStartKey != nil && inOrderOfReads(k, start) <= 0
	})
	items, read, bytes := []Item{}, 0, 0
	for _, key := range keys {
		item := t[key]
		if size := sizeOf(item); bytes+size <= pageSize && (in.Limit == nil || read < *in.Limit) {
			read, bytes = read+1, bytes+size
		} else {
			break
		}
		if filter.holds(item) {
			items = append(items, project(item, paths))
		}
	}
	w.charge(in.TableName, 0, bytes)
	out := object{"Count": len(items), "ScannedCount": read}
	if read < len(keys) || in.Limit != nil && read == *in.Limit {
		out["LastEvaluatedKey"] = project(t[keys[read-1]], []path{{"pk"}, {"sk"}})
	}
	if in.Select != "COUNT" {
		out["Items"] = items
	}
	if in.ReturnConsumedCapacity != "" {
		out["ConsumedCapacity"] = object{"TableName": in.TableName, "CapacityUnits": max(1, (bytes+readUnit-1)/readUnit)}
	}
	return out, nil
}

// write is one write: a whole request, or an item of a transaction.
type write struct {
	input
	kind string // Put, Update, Delete or ConditionCheck
}

func (in *write) apply(w *World) (any, error) {
	updated := in.ReturnValues == "UPDATED_NEW"
	if in.ReturnValues != "" && in.ReturnValues != "NONE" && !updated {
		return nil, notModelled("ReturnValues %s", in.ReturnValues)
	}
	e, err := in.try(w)
	w.charge(in.TableName, 1, e.bytes)
	if err != nil {
		return nil, err
	}
	e.commit()
	out := object{}
	if returned := project(e.item, e.paths); updated && len(returned) > 0 {
		out["Attributes"] = returned
	}
	if in.ReturnConsumedCapacity != "" {
		out["ConsumedCapacity"] = object{"TableName": in.TableName, "CapacityUnits": 1}
	}
	return out, nil
}

// effect is the effect of a write.
type effect struct {
	table table
	key   primaryKey
	item  Item   // after the write, nil for none
	paths []path // that it updates
	bytes int    // of the larger of the item before and after
}

// try returns the effect of the write. It changes nothing.
func (in *write) try(w *World) (e effect, err error) {
	condition, err := parse(in.input, in.ConditionExpression, (*parser).condition)
	if err != nil {
		return e, err
	}
	actions, err := parse(in.input, in.UpdateExpression, (*parser).update)
	if err != nil {
		return e, err
	}
	if e.table, err = w.table(in.TableName); err != nil {
		return e, err
	}
	if e.key = keyOf(in.Key); in.kind == "Put" {
		e.key = keyOf(in.Item)
	}
	old := e.table[e.key]
	defer func() { e.bytes = max(sizeOf(old), sizeOf(e.item)) }()
	if !condition.holds(old) {
		failed := refusal("ConditionalCheckFailedException", "The conditional request failed")
		if in.ReturnValuesOnConditionCheckFailure == "ALL_OLD" && old != nil {
			failed.Members = object{"Item": old}
		}
		return e, failed
	}
	switch in.kind {
	case "Put":
		e.item = in.Item
	case "Update":
		if old == nil {
			old = in.Key
		}
		for _, a := range actions {
			e.paths = append(e.paths, a.path)
		}
		e.item, err = apply(actions, old)
	case "ConditionCheck":
		e.item = old
	}
	return e, err
}

func (e effect) commit() {
	if e.item == nil {
		delete(e.table, e.key)
	} else {
		e.table[e.key] = e.item
	}
}

type transactWriteItems struct {
	TransactItems          []map[string]input // each with one write, by its kind
	ClientRequestToken     string
	ReturnConsumedCapacity string
}

// done is the response of success.
func (in *transactWriteItems) done() object {
	if in.ReturnConsumedCapacity == "" {
		return object{}
	}
	return object{"ConsumedCapacity": []object{{"TableName": in.writes()[0].TableName, "CapacityUnits": 2}}}
}

func (in *transactWriteItems) writes() (all []*write) {
	for _, item := range in.TransactItems {
		for kind, one := range item {
			all = append(all, &write{one, kind})
		}
	}
	return all
}

// apply makes all the writes or none.
func (in *transactWriteItems) apply(w *World) (any, error) {
	if earlier, ok := w.tokens[in.ClientRequestToken]; ok {
		if !reflect.DeepEqual(earlier, in.TransactItems) {
			return nil, refusal("IdempotentParameterMismatchException", "The provided client token was used with different parameters")
		}
		return in.done(), nil
	}
	var (
		effects []effect
		reasons []object
		failed  bool
	)
	for _, one := range in.writes() {
		e, err := one.try(w)
		w.charge(one.TableName, 1, e.bytes)
		w.charge(one.TableName, 1, e.bytes) // a transaction costs twice
		reason := object{"Code": "None"}
		if known, ok := errors.AsType[*Error](err); ok {
			switch known.Code {
			case "ConditionalCheckFailedException":
				reason["Code"] = "ConditionalCheckFailed"
				maps.Copy(reason, known.Members)
			case invalidCode:
				reason = object{"Code": "ValidationError", "Message": known.Message}
			default:
				return nil, err
			}
			failed = true
		}
		effects, reasons = append(effects, e), append(reasons, reason)
	}
	if failed {
		return nil, Cancelled(reasons...)
	}
	for _, e := range effects {
		e.commit()
	}
	w.tokens[in.ClientRequestToken] = in.TransactItems
	return in.done(), nil
}

// Cancelled is DynamoDB's error for a transaction that it cancelled, with a reason for
// each of its items. The code of an item that is not at fault is None.
func Cancelled(reasons ...map[string]any) *Error {
	e := refusal("TransactionCanceledException", "Transaction cancelled, please refer cancellation reasons for specific reasons")
	e.Members = object{"CancellationReasons": reasons}
	return e
}
