// Policies with one part removed. If each mutant changes the verdict on some call, the policy
// has no needless part, and each part was tried. A policy that grants too much allows a
// neighbour or a forbidden call (calls.mjs).

const listOf = (value) => [value ?? []].flat()
const without = (list, i) => list.filter((_, at) => at !== i)

/** Every mutant of the policy: the change, the statement, and the policy. */
export function* mutants(policy) {
  for (const [i, statement] of policy.Statement.entries()) {
    const having = (changed) => ({ ...policy, Statement: policy.Statement.toSpliced(i, 1, ...changed) })
    yield { statement, change: 'statement removed', policy: having([]) }
    for (const [change, mutant] of statementMutants(statement)) {
      yield { statement, change, policy: having([mutant]) }
    }
  }
}

function* statementMutants(s) {
  if (s.NotAction || s.NotResource || s.NotPrincipal) throw new Error(`${s.Sid}: Not… is not supported`)
  for (const [change, Action] of removals('action', listOf(s.Action))) yield [change, { ...s, Action }]
  for (const [change, Resource] of removals('resource', listOf(s.Resource))) yield [change, { ...s, Resource }]
  for (const [change, Condition] of conditionMutants(s.Condition ?? {})) yield [change, { ...s, Condition }]
}

function* removals(kind, values) {
  if (values.length < 2) return
  for (const [i, value] of values.entries()) yield [`${kind} ${value} removed`, without(values, i)]
}

function* conditionMutants(condition) {
  for (const [operator, test] of Object.entries(condition)) {
    const { [operator]: _, ...others } = condition
    yield [`${operator} removed`, others]
    for (const [key, value] of Object.entries(test)) {
      const { [key]: __, ...otherKeys } = test
      if (Object.keys(otherKeys).length > 0) yield [`${operator} ${key} removed`, { ...condition, [operator]: otherKeys }]
      for (const [change, values] of removals(`${operator} ${key}:`, listOf(value))) {
        yield [change, { ...condition, [operator]: { ...test, [key]: values } }]
      }
    }
  }
}
