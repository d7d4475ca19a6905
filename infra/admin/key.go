package main

import (
	"context"
	"fmt"
	"time"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

type keyCommands struct {
	Create  keyCreate  `cmd:"" help:"Make an API key and show it, once."`
	List    keyList    `cmd:"" reads:"" help:"List the account's API keys."`
	Disable keyDisable `cmd:"" help:"Refuse a key from the next request on."`
	Enable  keyEnable  `cmd:"" help:"Let a disabled key in again."`
	Delete  keyDelete  `cmd:"" help:"Remove a key for good."`
}

type keyCreate struct {
	owner
	Name      string        `arg:"" help:"What people call the key."`
	Kind      auth.Kind     `enum:"management,standard" default:"standard" help:"management or standard (${default})."`
	Workspace ids.Workspace `placeholder:"ID" help:"Bind a standard key to this workspace alone."`
	ExpiresIn lifetime      `xor:"end" placeholder:"DURATION" help:"How long the key is good for, such as 90d or 36h."`
	ExpiresAt time.Time     `xor:"end" placeholder:"TIME" help:"Until when it is good, such as 2027-01-31T00:00:00Z."`
}

// end is when the key ends; zero if never.
func (c keyCreate) end(now time.Time) (time.Time, error) {
	end := c.ExpiresAt
	if c.ExpiresIn != 0 {
		end = now.Add(time.Duration(c.ExpiresIn))
	}
	if !end.IsZero() && !end.After(now) {
		return time.Time{}, errExpiresInAgo
	}
	return end, nil
}

// Run makes a key. The key alone goes to standard output, so that it can be
// piped to where it belongs; everything else goes to standard error.
func (c keyCreate) Run(ctx context.Context, s *session) error {
	end, err := c.end(s.now())
	if err != nil {
		return err
	}
	token, key, err := s.registry.CreateKey(ctx, auth.NewKey{
		Account: c.Account, Workspace: c.Workspace, Kind: c.Kind, Name: c.Name, ExpiresAt: end,
	})
	s.audit(ctx, "key.create", err, "account", c.Account, "workspace", c.Workspace, "kind", c.Kind, "key", key.Hash)
	if err != nil {
		return err
	}
	defer token.Wipe()
	shown := string(token.Reveal())
	if err := s.out.say(createdKeyView{Key: shown, keyView: viewKey(key, s.now())}, "%s", shown); err != nil {
		return fmt.Errorf("showing the key, which is made and cannot be shown again; delete key %s: %w", key.Hash.Short(), err)
	}
	s.note("This is the only time the key is shown. Its hash, by which lists and logs name it, is %s.", key.Hash)
	return nil
}
