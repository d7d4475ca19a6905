// A call, the request that IAM sees for it, and the simulator's verdict.
//
// A call has the form of a line that the recorder writes: function, action,
// resource (a logical id, an ARN, or *), object, and conditions, each condition key with
// a list of values. The call of another principal has `who`, an ARN or a service, instead
// of function.

import { readFileSync } from 'node:fs'

import { createValidatedPolicy } from '@cloud-copilot/iam-policy'
import { runUnsafeSimulation } from '@cloud-copilot/iam-simulate'

/** The calls that the recorder wrote. */
export function readCalls(file) {
  return readFileSync(file, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line))
}

// Every other condition key has one value.
const lists = new Set(['dynamodb:Attributes', 'dynamodb:LeadingKeys', 'kms:EncryptionContextKeys'])

/** The call as IAM sees it. A recorded * stands for some value. */
export function requestOf(stack, call) {
  const role = call.who ?? stack.functions[call.function].role
  const context = {
    'aws:PrincipalArn': role,
    'aws:SecureTransport': 'true',
    ...(call.action.startsWith('s3:') && { 's3:TlsVersion': '1.3' }),
  }
  for (const [key, values] of Object.entries(call.conditions)) {
    context[key] = lists.has(key) ? values.map((v) => sample(key, v)) : sample(key, values[0])
  }
  return { principal: sessionOf(role), action: call.action, arn: arnOf(stack, call), account: stack.account, context }
}

const sample = (key, value) => (key === 's3:if-match' ? value : value.replaceAll('*', 'x'))

/** A role acts through a session, whose ARN lacks the role's path. */
function sessionOf(who) {
  return who.replace(/^arn:aws:iam::(\d+):role\/(?:.*\/)?(.*)/, 'arn:aws:sts::$1:assumed-role/$2/session')
}

function arnOf(stack, call) {
  if (call.resource === '*') return '*'
  const arn = stack.arns[call.resource] ?? call.resource
  if (!arn.startsWith('arn:')) throw new Error(`${call.action} on ${call.resource}, which the template does not have`)
  if (call.object) return `${arn}/${call.object.replaceAll('*', 'x')}`
  return arn.replace(/(:log-group:.*):\*$/, '$1:log-stream:x')
}

/** The properties by which policies should distinguish calls. */
export function scopeOf(call) {
  const { conditions: c } = call
  const finer = c['dynamodb:LeadingKeys'] ?? c['s3:prefix'] ?? []
  return [call.action, call.resource, call.object ?? '', ...finer].join(' ')
}

/** A call in words. */
export function describe(call) {
  const conditions = Object.entries(call.conditions).map(([key, values]) => `${key}=${values.join(',')}`)
  const where = call.object ? `${call.resource}/${call.object}` : call.resource
  return [call.action, where, ...conditions].join(' ')
}

/** Allows everything: the most that a principal's own policies can grant. */
export const everything = {
  Version: '2012-10-17',
  Statement: [{ Effect: 'Allow', Action: '*', Resource: '*' }],
}

/** A key policy that leaves the decision to IAM: only identity policies decide. */
export const leftToIam = (account) => ({
  Version: '2012-10-17',
  Statement: [{ Effect: 'Allow', Principal: { AWS: `arn:aws:iam::${account}:root` }, Action: '*', Resource: '*' }],
})

/**
 * Whether IAM allows the request under these policies.
 *
 * The simulator's checked entry takes kms:EncryptionContext:x for an unknown key
 * and leaves it out of the request, so this is the other one; vocabulary.mjs
 * checks actions and condition keys instead.
 */
export function allowed(request, identity, resourcePolicy) {
  return runUnsafeSimulation({
    request: {
      principal: request.principal,
      action: request.action,
      // An action without resources is allowed under * only. The simulator would take any resource for *.
      resource: { resource: request.arn === '*' ? 'arn:aws:nothing:::x' : request.arn, accountId: request.account },
      contextVariables: request.context,
    },
    identityPolicies: identity.map((policy, i) => ({ name: `${i}`, policy })),
    serviceControlPolicies: [],
    resourceControlPolicies: [],
    resourcePolicy: resourcePolicy && named(resourcePolicy),
  }, {}) === 'Allowed'
}

/** The simulator requires a name of a resource's policy, and accepts it only in this form. */
const named = (policy) => createValidatedPolicy(policy, () => [], { name: 'resource' })
