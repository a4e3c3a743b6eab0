-- For wrk: adds items, each to the next of many blocks. Arguments: a file of paths, a file with the body, and how
-- many requests have been made before.
local requests, made = {}, 0

function init(args)
  wrk.headers["Content-Type"] = "application/json"
  local body = io.open(args[2]):read("*a")
  for path in io.lines(args[1]) do
    requests[#requests + 1] = wrk.format("POST", path, nil, body)
  end
  made = tonumber(args[3])
end

function request()
  made = made + 1
  return requests[made % #requests + 1]
end
