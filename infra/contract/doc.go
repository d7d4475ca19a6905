// Package contract is the black-box test suite of the shipped service. It
// sends requests over HTTP, as any client does, and holds every response,
// success or error, against infra/openapi.yaml. What it needs beforehand
// (accounts, keys, jobs, files) it makes with the packages that the operator's
// command uses; beyond that it knows nothing of the inside.
//
// By default it starts the single-machine edition. With SIGNALBOX_BASE_URL in
// the environment it tests what listens there.
package contract
