// Judges the policies of keys and buckets.

import { allowed, everything } from './simulate.mjs'
import { describe, requestOf } from './request.mjs'
import { claims } from './claims.mjs'
import { mutants } from './mutants.mjs'
import { problemsOfCall, problemsOfPolicy } from './vocabulary.mjs'

/** What was found of the resource's own policy: counts, and problems in words. */
export async function judgeResource(stack, name, neededByFunctions) {
  const policy = stack.policies[name]
  const made = claims(stack)[name]
  if (!made) throw new Error(`nothing is said of who may use ${name}`)
  const problems = await problemsOfPolicy(policy)
  for (const claim of made) {
    problems.push(...await problemsOfCall(claim))
    if (verdict(stack, claim, policy) !== claim.right) {
      problems.push(`${claim.who} ${claim.right ? 'may not' : 'may'}: ${describe(claim)} (${claim.why})`)
    }
  }
  const calls = [...made, ...neededByFunctions.filter((call) => call.resource === name)]
  return {
    name, problems, ...survivingMutants(stack, name, calls),
    allowed: made.filter((claim) => claim.right).length,
    denied: made.filter((claim) => !claim.right).length,
  }
}

/**
 * Whether the policy lets somebody do it who may do everything by his own, or
 * nothing where the call is to stand alone. Services have no policies.
 */
function verdict(stack, call, policy) {
  const isService = !call.function && !call.who.startsWith('arn:')
  return allowed(requestOf(stack, call), isService || call.alone ? [] : [everything], policy)
}

/**
 * The mutants that give every call the verdict it had. What allows and what
 * denies is looked at apart: each half must be right where the other is missing.
 */
function survivingMutants(stack, name, calls) {
  const policy = stack.policies[name]
  const verdicts = (of, effect) => calls.map((call) => verdict(stack, call, half(of, effect)))
  const before = { Allow: verdicts(policy, 'Allow'), Deny: verdicts(policy, 'Deny') }
  const survivors = []
  let tried = 0
  for (const mutant of mutants(policy)) {
    tried++
    const { Effect, Sid } = mutant.statement
    const mutated = half(mutant.policy, Effect)
    if (calls.every((call, at) => verdict(stack, call, mutated) === before[Effect][at])) {
      survivors.push({ where: name, sid: Sid, change: mutant.change })
    }
  }
  return { tried, survivors }
}

function half(policy, effect) {
  const statements = policy.Statement.filter((s) => s.Effect === effect)
  const open = { Effect: 'Allow', Principal: '*', Action: '*', Resource: '*' }
  return { ...policy, Statement: effect === 'Deny' ? [open, ...statements] : statements }
}
