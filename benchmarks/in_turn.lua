-- For wrk: asks one path after another. Arguments: the method, a file of paths, how many requests have been made
-- before, for a POST a file with the body, or with one for each path, and then a text that each response must have.
local requests, made = {}, 0
local unexpected = false

function init(args)
  local bodies = {}
  if args[4] then
    wrk.headers["Content-Type"] = "application/json"
    for body in io.lines(args[4]) do
      bodies[#bodies + 1] = body
    end
  end
  for path in io.lines(args[2]) do
    requests[#requests + 1] = wrk.format(args[1], path, nil, bodies[#requests % math.max(#bodies, 1) + 1])
  end
  made = tonumber(args[3])
  if args[5] then
    -- wrk keeps the bodies of responses only for a script that has this function.
    function response(_, _, body)
      if not unexpected and not body:find(args[5], 1, true) then
        unexpected = true
        print("Unexpected response: " .. body:sub(1, 300))
      end
    end
  end
end

function request()
  made = made + 1
  return requests[made % #requests + 1]
end
