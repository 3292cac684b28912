
BdecayJcµ^¸µx·³´,¹