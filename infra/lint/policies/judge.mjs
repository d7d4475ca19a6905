// Judges the policies of one function.

import { allowed, leftToIam } from './simulate.mjs'
import { describe, requestOf, scopeOf } from './request.mjs'
import { forbidden } from './forbidden.mjs'
import { mutants } from './mutants.mjs'
import { neighbours } from './neighbours.mjs'
import { problemsOfCall, problemsOfPolicy } from './vocabulary.mjs'
import { unseen } from './unseen.mjs'

/** The findings about the function: counts, and problems as text. */
export async function judgeFunction(stack, name, allCalls) {
  const { policies } = stack.functions[name]
  const recorded = allCalls.filter((c) => c.function === name)
  const needed = [...recorded, ...unseen(stack, name, recorded)]
  const denied = [...forbidden(stack, name, needed), ...ofOthers(name, allCalls, needed), ...await neighbours(stack, needed)]

  const problems = []
  if (recorded.length === 0) problems.push('no call of it was recorded')
  for (const call of needed) problems.push(...await problemsOfCall(call))
  for (const policy of policies) problems.push(...await problemsOfPolicy(policy))
  for (const [calls, right] of [[needed, true], [denied, false]]) {
    for (const call of calls) problems.push(...verdicts(stack, policies, call, right))
  }
  return { name, recorded, needed, denied: denied.length, problems, ...survivingMutants(stack, name, [...needed, ...denied]) }
}

/** The calls of other functions that this one does not make itself. */
function ofOthers(name, allCalls, needed) {
  const own = new Set(needed.map(scopeOf))
  return allCalls
    .filter((c) => c.function !== name && !own.has(scopeOf(c)))
    .map((c) => ({ ...c, function: name, why: `does what ${c.function} does` }))
}

/** The problem with the verdict on one call: by the function's policies alone, and by all. */
function verdicts(stack, policies, call, right) {
  const request = requestOf(stack, call)
  const found = []
  const alone = leftToIam(stack.account)
  // Another stack's key is taken to leave all to IAM.
  const own = call.resource.startsWith('arn:') ? alone : stack.policies[call.resource]
  for (const [by, resourcePolicy] of [['its own policies', alone], ['all policies', own]]) {
    if (allowed(request, policies, resourcePolicy) !== right) {
      found.push(`${by} ${right ? 'deny' : 'allow'}: ${describe(call)}${call.why ? ` (${call.why})` : ''}`)
    }
  }
  return found
}

/** The mutants that give every call the verdict it had. */
function survivingMutants(stack, name, calls) {
  const { policies } = stack.functions[name]
  const anybody = leftToIam(stack.account)
  const requests = calls.map((call) => requestOf(stack, call))
  const before = requests.map((request) => allowed(request, policies, anybody))
  const survivors = []
  let tried = 0
  for (const [i, policy] of policies.entries()) {
    for (const mutant of mutants(policy)) {
      tried++
      const mutated = policies.with(i, mutant.policy)
      if (requests.every((request, at) => allowed(request, mutated, anybody) === before[at])) {
        survivors.push({ where: name, sid: mutant.statement.Sid, change: mutant.change })
      }
    }
  }
  return { tried, survivors }
}
