// Judges policies by calls: each call must get its right verdict, and each part of a policy must
// matter to the verdict on some call.

import { mutants } from './mutants.mjs'
import { describe } from './request.mjs'
import { problemsOfCall, problemsOfPolicy } from './vocabulary.mjs'

/**
 * The findings about some policies: counts, problems as text, and the mutants that no call notices.
 * verdicts returns the ways to judge a call, each with its name; all must find what is right.
 */
export async function judge({ name, policies, calls, verdicts }) {
  const problems = []
  for (const policy of policies) problems.push(...await problemsOfPolicy(policy))
  for (const call of calls) {
    problems.push(...await problemsOfCall(call))
    for (const [by, allows] of verdicts(call)) {
      if (allows(policies) !== call.right) {
        const why = call.why ?? (call.right ? 'recorded' : 'a neighbour of a recorded call')
        problems.push(`${call.right ? 'denied' : 'allowed'} by ${by}: ${call.who ?? call.function} ${describe(call)} (${why})`)
      }
    }
  }
  const holds = (call, changed) => verdicts(call).every(([, allows]) => allows(changed) === call.right)
  const sound = calls.filter((call) => holds(call, policies))
  const survivors = []
  let tried = 0
  for (const [i, policy] of policies.entries()) {
    for (const mutant of mutants(policy)) {
      tried++
      const mutated = policies.with(i, mutant.policy)
      if (sound.every((call) => holds(call, mutated))) survivors.push(`${name} ${mutant.statement.Sid}: ${mutant.change}`)
    }
  }
  const allowed = calls.filter((call) => call.right).length
  return { name, problems, survivors, tried, allowed, denied: calls.length - allowed }
}
