// Policies with one thing changed. A policy is exact if each of its mutants changes
// the verdict on some call.

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
  if (s.NotAction || s.NotResource || s.NotPrincipal) throw new Error(`${s.Sid}: Not… is not understood here`)
  for (const [change, Action] of actionMutants(listOf(s.Action))) yield [change, { ...s, Action }]
  for (const [change, Resource] of resourceMutants(listOf(s.Resource), s.Principal)) yield [change, { ...s, Resource }]
  if (s.Effect === 'Allow' && s.Principal) yield ['principal widened to everybody', { ...s, Principal: '*' }]
  for (const [change, Condition] of conditionMutants(s.Condition ?? {}, s.Effect)) yield [change, { ...s, Condition }]
}

function* actionMutants(actions) {
  for (const [i, action] of actions.entries()) {
    if (actions.length > 1) yield [`action ${action} removed`, without(actions, i)]
    const all = action.replace(/:.*/, ':*')
    if (action === all) continue
    yield [`action ${action} widened to ${all}`, actions.with(i, all)]
    if (action.endsWith('*')) yield [`action ${action} narrowed`, actions.with(i, action.slice(0, -1))]
  }
}

function* resourceMutants(resources, attached) {
  for (const [i, resource] of resources.entries()) {
    if (resources.length > 1) yield [`resource ${resource} removed`, without(resources, i)]
    if (attached) continue // a resource's own policy reaches no other
    for (const wider of new Set([resource.replace(/\/.*/, '/*'), '*'])) {
      if (wider !== resource) yield [`resource ${resource} widened to ${wider}`, resources.with(i, wider)]
    }
  }
}

function* conditionMutants(condition, effect) {
  for (const [operator, test] of Object.entries(condition)) {
    const { [operator]: _, ...others } = condition
    yield [`${operator} removed`, others]
    for (const other of otherOperators(operator, test, effect)) {
      // Two tests under one operator would be one: the new one goes first.
      yield [`${operator} made ${other}`, { ...others, [other]: { ...others[other], ...test } }]
    }
    for (const [key, value] of Object.entries(test)) {
      const { [key]: __, ...otherKeys } = test
      if (Object.keys(otherKeys).length > 0) yield [`${operator} ${key} removed`, { ...condition, [operator]: otherKeys }]
      for (const [change, values] of valueMutants(operator, listOf(value))) {
        yield [`${operator} ${key}: ${change}`, { ...condition, [operator]: { ...test, [key]: values } }]
      }
    }
  }
}

/** Operators that would mean something else with these values. */
function otherOperators(operator, test, effect) {
  const wild = Object.values(test).flatMap(listOf).some((value) => /[*?]/.test(value))
  const others = []
  if (operator.startsWith('ForAllValues:')) others.push(operator.replace('AllValues', 'AnyValue'))
  // ForAllValues accepts a missing key, and Null judges it.
  else if (operator.endsWith('IfExists')) others.push(operator.replace(/IfExists$/, ''))
  else if (effect === 'Allow' && operator !== 'Null') others.push(`${operator}IfExists`)
  if (wild && /StringEquals(IfExists)?$/.test(operator)) others.push(operator.replace('StringEquals', 'StringLike'))
  if (wild && /StringLike(IfExists)?$/.test(operator)) others.push(operator.replace('StringLike', 'StringEquals'))
  return others
}

function* valueMutants(operator, values) {
  for (const [i, value] of values.entries()) {
    if (values.length > 1) yield [`${value} removed`, without(values, i)]
    if (value === 'true' || value === 'false') {
      yield [`${value} negated`, values.with(i, value === 'true' ? 'false' : 'true')]
    } else if (operator.startsWith('Numeric')) {
      yield [`${value} made 0`, values.with(i, '0')]
    } else {
      yield [`${value} changed`, values.with(i, `${value}-other`)]
      if (/Like(IfExists)?$/.test(operator) && value !== '*') yield [`${value} widened to *`, values.with(i, '*')]
    }
  }
}
