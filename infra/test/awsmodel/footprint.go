package awsmodel

import (
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
	// Item names it: table/pk/sk, the key of an object, kms/ARN or token/….
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

// inOrder sorts items that a request has in no order.
func inOrder(touches []Touch) []Touch {
	slices.SortFunc(touches, func(a, b Touch) int { return strings.Compare(a.Item, b.Item) })
	return slices.Compact(touches)
}

// Footprint names a request and the items that it touches. A request that the model lacks
// touches nothing: the World refuses it.
func Footprint(r *http.Request, body []byte) (Label, []Touch) {
	c, err := read(r, body)
	if err != nil {
		return c.Label, nil
	}
	touches := c.touches()
	var names []string
	for _, t := range touches {
		switch {
		case t.Prefix:
			names = append(names, t.Item+"*")
		case !strings.HasPrefix(t.Item, tokenPrefix):
			names = append(names, t.Item)
		}
	}
	c.Item = strings.Join(names, " + ")
	return c.Label, touches
}
