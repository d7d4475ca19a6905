// Judges the policies of keys and buckets.

import { allowed, everything } from './simulate.mjs'
import { describe, requestOf } from './request.mjs'
import { claims } from './claims.mjs'
import { mutants } from './mutants.mjs'
import { problemsOfCall, problemsOfPolicy } from './vocabulary.mjs'

/** The findings about the resource's policy: counts, and problems as text. */
export async function judgeResource(stack, name, neededByFunctions) {
  const policy = stack.policies[name]
  const made = claims(stack)[name]
  if (!made) throw new Error(`there are no claims about ${name}`)
  const all = [...made, ...neededByFunctions.filter((call) => call.resource === name).map((call) => ({ ...call, right: true }))]
  const problems = await problemsOfPolicy(policy)
  for (const claim of made) problems.push(...await problemsOfCall(claim))
  for (const claim of all.filter((c) => !holds(stack, c, policy))) {
    problems.push(`${claim.who ?? claim.function} ${claim.right ? 'may not' : 'may'}${claim.twice ? ', or one half of the policy alone would let him' : ''}: ${describe(claim)} (${claim.why})`)
  }
  return {
    name, problems, ...survivingMutants(stack, name, all),
    allowed: made.filter((claim) => claim.right).length,
    denied: made.filter((claim) => !claim.right).length,
  }
}

/** Whether the claim holds. */
function holds(stack, claim, policy) {
  const parts = claim.twice ? [half(policy, 'Allow'), half(policy, 'Deny')] : [policy]
  return parts.every((part) => verdict(stack, claim, part) === claim.right)
}

/**
 * Whether the policy lets somebody do it who may do everything by his own, or
 * nothing where the call is to stand alone. Services have no policies.
 */
function verdict(stack, call, policy) {
  const isService = !call.function && !call.who.startsWith('arn:')
  return allowed(requestOf(stack, call), isService || call.alone ? [] : [everything], policy)
}

/** The policy with only its allowing statements, or only its denying ones. */
function half(policy, effect) {
  const statements = policy.Statement.filter((s) => s.Effect === effect)
  const open = { Effect: 'Allow', Principal: '*', Action: '*', Resource: '*' }
  return { ...policy, Statement: effect === 'Deny' ? [open, ...statements] : statements }
}

/** The mutants under which every claim still holds. */
function survivingMutants(stack, name, all) {
  const survivors = []
  let tried = 0
  for (const { statement, change, policy } of mutants(stack.policies[name])) {
    tried++
    if (all.every((claim) => holds(stack, claim, policy))) survivors.push({ where: name, sid: statement.Sid, change })
  }
  return { tried, survivors }
}
