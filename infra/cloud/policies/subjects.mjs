// The policies to judge, each with the calls that must be allowed or denied, and how a call is judged.

import { claims } from './claims.mjs'
import { forbidden, neighbours, unseen } from './calls.mjs'
import { requestOf, scopeOf } from './request.mjs'
import { allowed, everything, leftToIam } from './simulate.mjs'

/** The policies of a function's role. */
export async function ofFunction(stack, name, recorded) {
  const own = recorded.filter((call) => call.function === name)
  if (own.length === 0) throw new Error(`no call of ${name} was recorded`)
  const needed = [...own, ...unseen(stack, name, own)]
  const scopes = new Set(needed.map(scopeOf))
  const others = recorded.filter((call) => call.function !== name && !scopes.has(scopeOf(call)))
    .map((call) => ({ ...call, function: name, why: `does what ${call.function} does` }))
  const denied = [...forbidden(stack, name, needed), ...others, ...await neighbours(stack, needed)]
  const anybody = leftToIam(stack.account)
  return {
    name,
    policies: stack.functions[name].policies,
    calls: [...needed.map((call) => ({ ...call, right: true })), ...denied.map((call) => ({ ...call, right: false }))],
    verdicts: (call) => {
      const request = requestOf(stack, call)
      // This assumes that another stack's key leaves the decision to IAM.
      const resource = stack.policies[call.resource]
      return [
        ['its own policies', (policies) => allowed(request, policies, anybody)],
        ...(resource ? [['all policies', (policies) => allowed(request, policies, resource)]] : []),
      ]
    },
  }
}

/** The policy of a key or bucket, judged by claims and by the calls that functions need. */
export function ofResource(stack, name, needed) {
  const made = claims(stack)[name]
  if (!made) throw new Error(`there are no claims about ${name}`)
  return {
    name,
    policies: [stack.policies[name]],
    calls: [...made, ...needed.filter((call) => call.resource === name)],
    verdicts: (call) => {
      const request = requestOf(stack, call)
      // The caller's own policies allow everything. They allow nothing if the resource policy must
      // allow the call alone, or if a service makes it: services have no policies.
      const isService = !call.function && !call.who.startsWith('arn:')
      const identity = isService || call.alone ? [] : [everything]
      const by = (part) => ([policy]) => allowed(request, identity, part(policy))
      if (!call.twice) return [['the policy', by((policy) => policy)]]
      return ['Allow', 'Deny'].map((effect) => [`its statements with ${effect}`, by((policy) => half(policy, effect))])
    },
  }
}

/** The policy with only its allowing statements, or only its denying ones. */
function half(policy, effect) {
  const statements = policy.Statement.filter((s) => s.Effect === effect)
  const open = { Effect: 'Allow', Principal: '*', Action: '*', Resource: '*' }
  return { ...policy, Statement: effect === 'Deny' ? [open, ...statements] : statements }
}
