package edition

import (
	"fmt"

	"signalbox.dev/infra/local/samlocal"
	"signalbox.dev/infra/local/template"
)

// The edition's port, and two more: that of `sam local start-api` is in
// samconfig.toml, and the next one is for its containers.
const samLocalPort = 2

// serveSAMLocal lets `sam local` serve the same data, and writes an event of each
// function for `sam local invoke`.
func (e *Edition) serveSAMLocal(o Options, t *template.Template, made template.Resources) error {
	c := samlocal.Config{
		State: o.State, Engines: e.engines, Parameters: o.Parameters, Events: make(map[string][]byte), Log: e.journal.log,
	}
	if o.Port != 0 && o.Port <= maxPort-samLocalPort {
		c.Port = o.Port + samLocalPort
	}
	requests, err := e.Demo.Requests()
	if err != nil {
		return fmt.Errorf("sample events: %w", err)
	}
	for _, r := range requests {
		function, event, err := e.gateway.Event(r)
		if err != nil {
			return fmt.Errorf("sample events: %w", err)
		}
		c.Events[function] = event
	}
	if c.Functions, err = t.Functions(made); err != nil {
		return err
	}
	e.samLocal, err = samlocal.Start(c)
	return err
}
