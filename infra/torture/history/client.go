package history

import (
	"context"
	"math/rand/v2"

	"signalbox.dev/infra/torture/caller"
	"signalbox.dev/infra/torture/world"
)

// client does one thing after the other.
type client struct {
	*round
	random *rand.Rand
	number int
	count  int
}

func (x *client) act(ctx context.Context) {
	x.count++
	x.operations.Add(1)
	workspace := x.random.IntN(workspaces)
	switch n := x.random.IntN(100); {
	case n < 18:
		x.create(ctx, workspace)
	case n < 36:
		x.createOnce(ctx)
	case n < 54:
		x.delete(ctx)
	case n < 62:
		x.upload(ctx, x.file())
	case n < 66:
		x.head(ctx, x.file())
	case n < 76:
		x.list(ctx, workspace)
	case n < 84:
		x.read(ctx)
	case n < 88:
		x.step(ctx)
	case n < 94:
		x.setKey(ctx)
	case n < 97:
		x.deleteWorkspace(ctx, workspace)
	default:
		x.setDefault(ctx, workspace)
	}
}

func (x *client) key() world.Key { return x.keys[x.random.IntN(len(x.keys))] }

func (x *client) file() fileAt { return x.files[x.random.IntN(len(x.files))] }

// shown notes what an operation showed that began then and has ended now.
func (x *client) shown(call int64, shown ...event) { x.note(x.number, call, x.now(), shown...) }

// retried notes what an operation may have done once more between then and now:
// where an answer is lost, the SDK sends its request again.
func (x *client) retried(call int64, once event) {
	if x.stormy {
		x.shown(call, once)
	}
}

// unsure notes an operation that may have taken, or may yet take, its
// effect.
func (x *client) unsure(call int64, perhaps ...event) {
	x.uncertain.Add(1)
	x.note(x.number, call, never, perhaps...)
	if x.stormy {
		x.note(x.number, call, never, perhaps...) // once more, by the SDK
	}
}

// answered notes that an answer breaks the contract whatever happened.
func (x *client) answered(a caller.Answer, err error) {
	if err != nil {
		x.violation("%v", err)
	}
	if a.Status == 429 {
		x.violation("the limiter refused what was far below its limit")
	}
}
