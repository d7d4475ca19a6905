package main

import (
	"slices"
	"strings"
	"testing"
)

// Names of request headers: those that reach a provider, and one of each kind that does not: a
// sign-in, who pays, an address, a trace, a page, Envoy's own, ours, and a prefix cut short.
var toProvider, fromClient = strings.Fields(`
	accept content-type user-agent
	anthropic-beta anthropic-version idempotency-key openai-beta x-client-request-id x-grok-conv-id x-request-id
	x-stainless-arch x-stainless-helper-method x-stainless-raw-response
`), strings.Fields(`
	api-key cookie proxy-authorization x-api-key x-goog-api-key x-amz-security-token x-goog-iap-jwt-assertion
	anthropic-organization-id openai-organization openai-project x-goog-user-project
	forwarded x-forwarded-for x-forwarded-host x-forwarded-client-cert x-real-ip via baggage traceparent x-b3-traceid
	accept-encoding accept-language origin range referer x-envoy-attempt-count x-envoy-external-address x-envoy-original-path
	x-http-method-override x-original-url x-signalbox-host x-signalbox-user x-stainless x-amzn-bedrock-guardrailidentifier
`)

// Names of response headers: those that come back, those that the owner of the key gets, and
// one of each kind that nobody gets.
var toCaller, toOwner, fromProvider = strings.Fields(`
	cache-control content-disposition content-language content-type date openai-processing-ms openai-version retry-after retry-after-ms
	x-should-retry apim-request-id mistral-correlation-id request-id x-amzn-requestid x-ms-request-id x-request-id
`), strings.Fields(`
	anthropic-ratelimit-requests-limit anthropic-ratelimit-tokens-reset x-ratelimit-limit-requests x-ratelimit-reset-tokens
`), strings.Fields(`
	access-control-allow-origin alt-svc content-location content-security-policy link location refresh set-cookie strict-transport-security
	anthropic-organization-id openai-organization x-goog-project x-ms-region x-accel-redirect x-sendfile
	age etag server-timing vary via x-powered-by x-envoy-attempt-count x-envoy-overloaded x-envoy-immediate-health-check-fail
	proxy-authenticate www-authenticate x-api-key authorization x-signalbox-account x-signalbox-reason x-ratelimit x-openai-model traceparent
`)

// headers: each name of the lists crosses, or does not: note and send check that nothing else does.
func headers(t *testing.T, a *tenant) {
	var pairs []string
	for _, name := range slices.Concat(toProvider, fromClient) {
		pairs = append(pairs, name, "a-value")
	}
	var number string
	a.ask(func(n string) string { number = n; return bodyFor(model, n) }, pairs...)
	arrived := a.providers.headersOf(number)
	for _, name := range toProvider {
		if arrived.Get(name) != "a-value" && name != "x-request-id" { // Envoy makes one of its own
			t.Errorf("%s does not reach the provider", name)
		}
	}
	for _, answers := range [][]string{{"200"}, {"500", "200"}} {
		g := a.call(model, answers...)
		for _, name := range slices.Concat(toCaller, toOwner) {
			if comes := g.header.Get(name) == "1"; comes != (len(answers) == 1 || slices.Contains(toCaller, name)) {
				t.Errorf("%v: the provider's %s comes back: %t", answers, name, comes)
			}
		}
	}
}
