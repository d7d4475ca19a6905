package model

import (
	"fmt"
	"maps"
	"slices"
)

// What a judge and a test read and write without a request.

// Items returns all items of a table, in the order of a Scan.
func (w *World) Items(tableName string) []Item {
	t := w.mustTable(tableName)
	var items []Item
	for _, key := range t.sorted() {
		items = append(items, maps.Clone(t.items[key]))
	}
	return items
}

// Item returns the item of a primary key, nil if there is none. sk is "" if the table
// has no sort key.
func (w *World) Item(tableName, pk, sk string) Item {
	return maps.Clone(w.mustTable(tableName).items[primaryKey{pk, sk}])
}

// PutItem stores an item.
func (w *World) PutItem(tableName string, i Item) {
	t := w.mustTable(tableName)
	key, err := t.keyOf(i)
	if err != nil {
		panic(err)
	}
	t.items[key] = maps.Clone(i)
}

func (w *World) mustTable(name string) *table {
	t, err := w.table(name)
	if err != nil {
		panic(fmt.Sprintf("table %s: %v", name, err))
	}
	return t
}

// Objects returns the keys of all objects that have versions or delete markers.
func (w *World) Objects() []string { return w.bucket.keysUnder("") }

// Versions returns the versions and delete markers of a key, newest first.
func (w *World) Versions(key string) []Version { return slices.Clone(w.bucket.versions[key]) }

// PutObject stores an object, or a new version if the bucket has versions.
func (w *World) PutObject(key string, content []byte) {
	w.store(key, content, "application/octet-stream")
}

// SetVersioning enables or suspends the versioning of the bucket.
func (w *World) SetVersioning(state string) { w.bucket.versioning = state }

// KeyState returns the state of a KMS key: Enabled, Disabled or PendingDeletion, and ""
// if there is no such key.
func (w *World) KeyState(arn string) string {
	k, err := w.find(arn)
	if err != nil {
		return ""
	}
	return k.state
}

// Open decrypts a ciphertext of KMS whatever the state of its key. It is false if the
// ciphertext was not made for this context.
func (w *World) Open(blob []byte, context map[string]string) (plaintext []byte, ok bool) {
	states := map[*key]key{}
	for _, k := range w.keys {
		states[k] = *k
		k.state = enabled
	}
	plaintext, _, err := w.open(blob, context, "")
	for k, before := range states {
		*k = before
	}
	return plaintext, err == nil
}
