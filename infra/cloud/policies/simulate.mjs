// Asks the simulator whether a principal may make a call.

import { createValidatedPolicy } from '@cloud-copilot/iam-policy'
import { runUnsafeSimulation } from '@cloud-copilot/iam-simulate'

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
      resource: { resource: request.arn, accountId: request.account },
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
